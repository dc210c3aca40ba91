"""Standard error as a server writes it: a client that does not read it, or has closed it, holds up nothing."""

from __future__ import annotations

import io
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from os import write

_PIECE = 4096
"""Bytes that a pipe takes without waiting whenever it takes any (PIPE_BUF on Linux)."""


class Unwaiting(io.TextIOBase):
    """Writes to a descriptor what can be written at once; the rest is lost, as nobody would have read it."""

    encoding = "utf-8"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        data = text.encode(errors="replace")
        with suppress(OSError):
            for start in range(0, len(data), _PIECE):
                if not select.select([], [self._descriptor], [], 0)[1]:
                    break
                write(self._descriptor, data[start : start + _PIECE])
        return len(text)


@contextmanager
def nobody_need_read() -> Iterator[None]:
    """Meanwhile whatever this process says on standard error, ours or a library's, waits for nobody."""
    sys.stderr.flush()
    with redirect_stderr(Unwaiting(sys.stderr.fileno())):
        yield
