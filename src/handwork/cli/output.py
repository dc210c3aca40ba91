"""The standard streams: events as lines of JSON, or the answer alone; and what happens when they cannot be written."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from handwork.events import Event, write_event


class OutputFailed(Exception):
    """Standard output takes nothing more, and not because its reader has gone: the disk behind it is full, say."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output cannot be written: {error.strerror or error}")


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Inside the block, writing to standard output raises OutputFailed, or BrokenPipeError when the reader has gone.

    Standard error, whose failure could be told nobody, takes everything in silence. A stream that the caller has closed is
    opened to nowhere, or what is written to it would end up in the next file that is opened.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    # what stands in for a stream (a test's capture) is left as it is
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _over(_Output, sys.stdout)
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _over(_Progress, sys.stderr)
    try:
        yield
    finally:
        if before[1] is not None:
            sys.stdout = before[1]
        if before[2] is not None:
            sys.stderr = before[2]


def flush_streams() -> None:
    """Write what is buffered; a reader that has gone is no error of ours. Raises OutputFailed."""
    sys.stderr.flush()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()


class _Output(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            silence_stdout()  # or the interpreter would try again at its end
            raise OutputFailed(error) from error


class _Progress(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _over(kind: type[io.FileIO], stream: io.TextIOWrapper) -> io.TextIOWrapper:
    stream.flush()
    raw = kind(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=kind is _Progress or stream.isatty()
    )


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
        threading.Thread(target=self._write_all, name="handwork-json-lines", daemon=True).start()

    def __call__(self, event: Event) -> None:
        self._lines.put(write_event(event) + b"\n")

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
