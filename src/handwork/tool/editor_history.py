"""What the editor can take back: the last edits of each file, bounded, and never over somebody else's work."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from handwork.tool.editor_diff import common_end, common_start

LEVELS = 100
"""Edits of one file that can be taken back."""
MAX_BYTES = 64_000_000
"""Bytes that all kept edits may hold together."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a file: what it replaced (None: the edit created the file) and what the file held afterwards."""

    removed: bytes | None
    start: int
    kept: int
    """How many bytes at the end stayed the same."""
    after: bytes
    """SHA-256 of the file after the edit."""

    @classmethod
    def between(cls, before: bytes | None, after: bytes) -> Edit:
        """The smallest record that leads from `after` back to `before`."""
        digest = hashlib.sha256(after).digest()
        if before is None:
            return cls(None, 0, 0, digest)
        start = common_start(before, after)
        kept = common_end(before, after, start)
        return cls(before[start : len(before) - kept], start, kept, digest)

    def fits(self, now: bytes) -> bool:
        """Whether the file is still as this edit left it."""
        return hashlib.sha256(now).digest() == self.after

    def undone(self, now: bytes) -> bytes | None:
        """The bytes before the edit; None: there was no file."""
        if self.removed is None:
            return None
        return now[: self.start] + self.removed + now[len(now) - self.kept :]

    @property
    def size(self) -> int:
        return len(self.removed or b"") + 200


class EditHistory:
    """The edits of a session, by file (its real path). `lock` keeps two edits from reading the same state."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self._edits: OrderedDict[str, list[Edit]] = OrderedDict()
        self._size = 0

    def add(self, file: str, edit: Edit) -> None:
        """Remember an edit; the oldest of the file, then of the file edited longest ago, make room."""
        edits = self._edits.setdefault(file, [])
        self._edits.move_to_end(file)
        edits.append(edit)
        self._size += edit.size
        while len(edits) > LEVELS:
            self._size -= edits.pop(0).size
        while self._size > MAX_BYTES and self._edits:
            self._drop_oldest()

    def last(self, file: str) -> Edit | None:
        """The newest edit of the file."""
        edits = self._edits.get(file)
        return edits[-1] if edits else None

    def pop(self, file: str) -> None:
        """Forget the newest edit of the file, which has been taken back."""
        self._size -= self._edits[file].pop().size
        if not self._edits[file]:
            del self._edits[file]

    def _drop_oldest(self) -> None:
        file = next(iter(self._edits))
        self._size -= self._edits[file].pop(0).size
        if not self._edits[file]:
            del self._edits[file]
