"""The standard streams: the answer alone on standard output, and what happens when they cannot be written."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from handwork.cli.screen import is_terminal, open_screen


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


def print_answer(text: str) -> None:
    """The (clean) answer as the last thing on standard output, in whatever encoding that has; a terminal draws its Markdown."""
    if is_terminal(sys.stdout):
        screen = open_screen(sys.stdout, spins=False)
        screen.say(text + "\n")
        screen.said()
        return
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
