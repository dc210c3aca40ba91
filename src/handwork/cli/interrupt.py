"""Ctrl-C and SIGTERM: the first ends the run in good order, the second at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

_PATIENCE = 1.0
"""Seconds that killing what runs in the sandbox may take after the second Ctrl-C."""


class Interrupts:
    """What the signals do. Until `run` is set the first signal cancels the main task, then it calls `run` (agent.cancel).

    `tell` says a line to the user; `kill`, set once there is a sandbox, ends everything in it.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._main = asyncio.current_task()
        self._ending: asyncio.Task[None] | None = None
        self.asked = False
        self.run: Callable[[], None] | None = None
        self.kill: Callable[[], Awaitable[None]] | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Handle the signals inside the block."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.interrupt)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def interrupt(self) -> None:
        if self._ending is not None:
            os._exit(130)
        if self.asked:
            self._ending = asyncio.get_running_loop().create_task(self._end_now())
            return
        self.asked = True
        self._tell("Stopping … (Ctrl-C again: leave at once)")
        if self.run is not None:
            self.run()
        elif self._main is not None:
            self._main.cancel()

    async def _end_now(self) -> None:
        if self.kill is not None:
            with suppress(TimeoutError, OSError):
                await asyncio.wait_for(self.kill(), _PATIENCE)
        os._exit(130)
