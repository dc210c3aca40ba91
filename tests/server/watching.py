"""Waiting for what can be observed from outside: files and processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psutil

_MOST = 600
_PAUSE = 0.05


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; fails if it does not soon."""
    for _ in range(_MOST):
        if holds():
            return
        await asyncio.sleep(_PAUSE)
    raise AssertionError("it never came to that")


def sleeping(seconds: str) -> bool:
    """Whether a program below us sleeps for exactly so long."""
    for process in psutil.Process().children(recursive=True):
        try:
            if process.cmdline() == ["sleep", seconds]:
                return True
        except psutil.NoSuchProcess:
            continue
    return False
