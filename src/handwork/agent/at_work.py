"""What an agent does just now: one thing at a time, in a task of its own that can be asked to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from weakref import ref

from handwork.schema import RunResult


class AtWork:
    """True while something is being done; `stop` is set when somebody asked that to end."""

    __slots__ = ("_task", "_watcher", "stop")

    def __init__(self) -> None:
        self._task: asyncio.Task[RunResult] | None = None
        self._watcher: ref[Any] | None = None
        self.stop = asyncio.Event()

    def __bool__(self) -> bool:
        return self._task is not None

    def begin(
        self,
        work: Coroutine[Any, Any, RunResult],
        name: str,
        done: Callable[[], None],
        watcher: ref[Any] | None = None,
    ) -> asyncio.Task[RunResult]:
        """Do this and nothing else until it is over; `done` is called then, also when the task is cancelled before it began.

        `watcher` is what shows the work, if anything does: when that is gone, nobody wants the work any more.
        """

        def over(_task: asyncio.Task[RunResult]) -> None:
            self._task = self._watcher = None
            done()

        self.stop, self._watcher = asyncio.Event(), watcher
        self._task = asyncio.create_task(work, name=name)
        self._task.add_done_callback(over)
        return self._task

    def cancel(self) -> None:
        """Ask what is being done to stop."""
        self.stop.set()

    async def stopped(self) -> None:
        """Let work that is being stopped come to its end: whoever has left a stream early may begin the next at once."""
        if self._watcher is not None and self._watcher() is None:
            self.cancel()
        if self._task is not None and self.stop.is_set():
            await asyncio.wait({self._task})

    async def end_of(self, task: asyncio.Task[RunResult]) -> RunResult:
        """Wait for work that was begun; being cancelled asks it to stop, and is raised when it has."""
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
                self.cancel()
        if cancelled is not None:
            if not task.cancelled():
                task.exception()
            raise cancelled
        return task.result()
