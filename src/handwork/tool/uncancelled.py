"""Doing something to its end although the caller is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


async def uncancelled(work: Coroutine[Any, Any, R]) -> tuple[R, bool]:
    """Do something to its end although the caller is cancelled meanwhile; returns what came of it, and whether that happened."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    return task.result(), cancelled
