"""One thing at a time that Esc can stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class Busy:
    """`stopping` says that what goes on was asked to end."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._stop: Callable[[], object] | None = None
        self.stopping = False

    def __bool__(self) -> bool:
        return self._task is not None

    async def do(self, work: Coroutine[Any, Any, R], stop: Callable[[], object] | None = None) -> R | None:
        """Do something to its end; None if it was stopped. `stop` is how it is asked to end, cancelling unless given."""
        task: asyncio.Task[R] = asyncio.ensure_future(work)
        self._task = task
        self._stop, self.stopping = stop or task.cancel, False
        try:
            return await task
        except asyncio.CancelledError:
            if not self.stopping or not task.cancelled():
                raise
            return None
        finally:
            self._task = self._stop = None
            self.stopping = False

    def stop(self) -> bool:
        """Ask what goes on to end; False if nothing does."""
        if self._stop is None:
            return False
        if not self.stopping:
            self.stopping = True
            self._stop()
        return True
