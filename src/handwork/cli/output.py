"""Standard output: events as lines of JSON, or the answer alone."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue

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
        sys.stdout.flush()
        # not through sys.stdout: its lock, held by a blocked thread, would hold up the interpreter's end
        self._descriptor = sys.stdout.fileno()
        threading.Thread(target=self._write_all, name="handwork-json-lines", daemon=True).start()

    def __call__(self, event: Event) -> None:
        self._lines.put(write_event(event) + b"\n")

    async def finish(self, patience: float | None = None) -> None:
        """Wait until all is written, or nobody reads, or `patience` (seconds) is over."""
        self._lines.put(None)
        try:
            await asyncio.wait_for(self._written.wait(), patience)
        except TimeoutError:
            return

    def _write_all(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                while line:
                    line = line[os.write(self._descriptor, line) :]
        except OSError:  # the reader has gone, or the disk behind a redirection is full
            silence_stdout()
            self._call(self._gone)
        self._call(self._written.set)

    def _call(self, what: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(what)
        except RuntimeError:  # the loop is closed: nobody waits
            return


def print_answer(text: str) -> None:
    """The (clean) answer as the last thing on standard output, in whatever encoding that has."""
    try:
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.flush()
        sys.stdout.buffer.write((text + "\n").encode(encoding, "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        silence_stdout()


def silence_stdout() -> None:
    """Nobody reads standard output any more: what is still written to it goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
