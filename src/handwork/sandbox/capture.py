"""Output kept in bounded memory: its head and its tail, and the count of what lay between."""

from __future__ import annotations

from collections import deque


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
