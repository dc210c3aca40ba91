"""Output kept in bounded memory: its head and its tail, and the count of what lay between."""

from __future__ import annotations

import asyncio
import os
from collections import deque

_CHUNK = 1 << 18


class Capture:
    """Keeps at most `limit` bytes: the first and the last half of what was fed."""

    def __init__(self, limit: int) -> None:
        self._head_room = limit - limit // 2
        self._tail_room = limit // 2
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.omitted = 0

    def feed(self, data: bytes) -> None:
        if self._head_room:
            first, data = data[: self._head_room], data[self._head_room :]
            self._head_room -= len(first)
            self._head.append(first)
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_room:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self.omitted += gone

    def finish(self) -> tuple[bytes, int]:
        """What was kept and how many bytes were left out; a mark stands where they are missing."""
        tail = b"".join(self._tail)
        if excess := max(0, len(tail) - self._tail_room):
            self.omitted += excess
            tail = tail[excess:]
        if not self.omitted:
            return b"".join(self._head) + tail, 0
        return b"".join([*self._head, b"\n[... %d bytes left out ...]\n" % self.omitted, tail]), self.omitted


class Drain:
    """Reads one pipe as it fills, so that the program never waits for us, and keeps a bounded part."""

    def __init__(self, limit: int) -> None:
        self._capture = Capture(limit)
        self._fd: int | None = None

    def open(self) -> int:
        """Start reading; the end to write to is the caller's."""
        self._fd, theirs = os.pipe()
        os.set_blocking(self._fd, False)
        asyncio.get_running_loop().add_reader(self._fd, self._read)
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
        for _ in range(16):
            if not self._read():
                break
        self.close()
        return self._capture.finish()

    def close(self) -> None:
        if self._fd is not None:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None
