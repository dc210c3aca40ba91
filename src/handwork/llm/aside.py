"""Blocking work beside the event loop, in a thread that nobody waits for once it is not wanted any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def aside(work: Callable[[], T]) -> T:
    """What the work returns or raises. The loop's own threads would hold up the program's end."""
    return await asyncio.wrap_future(begun(work))


def begun(work: Callable[[], T]) -> Future[T]:
    """Work that has begun in such a thread."""
    outcome: Future[T] = Future()
    threading.Thread(target=_perform, args=(work, outcome), name="handwork-aside", daemon=True).start()
    return outcome


def _perform(work: Callable[[], T], outcome: Future[T]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # work in a thread is a named boundary
        outcome.set_exception(error)
    else:
        outcome.set_result(result)
