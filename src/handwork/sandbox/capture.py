"""Output kept in bounded memory: its head and its tail, and the count of what lay between."""

from __future__ import annotations

import asyncio
import os
from collections import deque

_CHUNK = 1 << 18


class Capture:
    """Keeps at most `limit` bytes: the first and the last half of what was fed, or only the last; `total` counts all."""

    def __init__(self, limit: int, *, tail_only: bool = False) -> None:
        self.total = 0
        self._limit, self._tail_room = limit, limit if tail_only else limit // 2
        self._head_room = limit - self._tail_room
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0

    def feed(self, data: bytes) -> None:
        """Take more bytes in."""
        self.total += len(data)
        if room := self._head_room - len(self._head):
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_room:
            self._tail_size -= len(self._tail.popleft())

    @property
    def omitted(self) -> int:
        """How many bytes in the middle are not kept."""
        return max(self.total - self._limit, 0)

    def ends(self) -> tuple[bytes, bytes]:
        """The kept head and tail; without a gap between them if nothing is omitted."""
        tail = b"".join(self._tail)
        return bytes(self._head), tail[max(len(tail) - self._tail_room, 0) :]

    def finish(self) -> tuple[bytes, int]:
        """What was kept and how many bytes were left out; a mark stands where they are missing."""
        head, tail = self.ends()
        mark = b"\n[... %d bytes left out ...]\n" % self.omitted if self.omitted else b""
        return head + mark + tail, self.omitted


class Drain:
    """Reads one pipe as it fills, so that the program never waits for us, and keeps a bounded part."""

    def __init__(self, limit: int, *, tail_only: bool = False) -> None:
        self._capture = Capture(limit, tail_only=tail_only)
        self._loop = asyncio.get_running_loop()
        self._fd: int | None = None

    def open(self) -> int:
        """Start reading; the end to write to is the caller's."""
        self._fd, theirs = os.pipe()
        os.set_blocking(self._fd, False)
        self._loop.add_reader(self._fd, self._read)
        return theirs

    def _read(self) -> bool:
        if self._fd is None:
            return False
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return False
        if data:
            self._capture.feed(data)
        else:
            self.close()
        return bool(data)

    def finish(self) -> tuple[bytes, int]:
        """What is still in the pipe, but no more than a pipe can hold: somebody else may have it open and go on writing."""
        self._rest()
        self.close()
        return self._capture.finish()

    def tail(self) -> bytes:
        """The end of what was written until now; it goes on reading."""
        self._rest()
        return self._capture.ends()[1]

    def _rest(self) -> None:
        for _ in range(16):
            if not self._read():
                break

    def close(self) -> None:
        if self._fd is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None
