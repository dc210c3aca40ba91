"""Events as lines of JSON on standard output."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue

from handwork.cli.clean import json_for_terminal
from handwork.cli.output import OutputFailed, silence_stdout
from handwork.cli.screen import is_terminal
from handwork.events import Event, write_event


class JsonLines:
    """A listener that writes one event a line, each at once.

    A thread writes, so that a reader who is slow, or has stopped reading, never holds up the run or its end. `gone` is called
    when nobody reads any more. Made inside a running event loop.
    """

    def __init__(self, gone: Callable[[], None]) -> None:
        self._gone = gone
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._written = asyncio.Event()
        self._problem: OutputFailed | None = None
        sys.stdout.flush()
        # not through sys.stdout: its lock, held by a blocked thread, would hold up the interpreter's end
        self._descriptor = sys.stdout.fileno()
        self._shown = is_terminal(sys.stdout)
        threading.Thread(target=self._write_all, name="handwork-json-lines", daemon=True).start()

    def __call__(self, event: Event) -> None:
        line = write_event(event)
        if self._shown and not line.isascii():
            line = json_for_terminal(line.decode()).encode()
        self._lines.put(line + b"\n")

    async def finish(self, patience: float | None = None) -> None:
        """Wait until all is written, or nobody reads, or `patience` (seconds) is over. Raises OutputFailed."""
        self._lines.put(None)
        try:
            await asyncio.wait_for(self._written.wait(), patience)
        except TimeoutError:
            return
        if self._problem is not None:
            raise self._problem

    def _write_all(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                while line:
                    line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self._problem = OutputFailed(error)
            silence_stdout()
            self._call(self._gone)
        self._call(self._written.set)

    def _call(self, what: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:  # the loop is closed: nobody waits
            return
