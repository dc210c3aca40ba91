"""What /undo knows of one thing in the workspace, and what it does not look at."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from typing import Any, Literal

IGNORED = frozenset(
    {".git", ".hg", ".svn", ".jj", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox", ".gradle"}
    | {".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".cache", ".ipynb_checkpoints"}
)
"""Folders of these names are not copied: tools make them anew, or keep a history of their own."""
LARGEST = 16 << 20
"""Bytes of a file above which its content is not copied."""

Kind = Literal["file", "link", "folder", "other"]
_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "folder"}
_TICK = 50_000_000
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Entry:
    """`held` is a file's SHA-256 if its content is kept, or a link's target; `fresh`: it was changed so shortly before it was
    looked at that the next change may leave the same times."""

    kind: Kind
    mode: int
    size: int = 0
    modified: int = 0
    changed: int = 0
    inode: int = 0
    names: int = 1
    held: str = ""
    fresh: bool = False

    @classmethod
    def of(cls, status: os.stat_result, held: str = "") -> Entry:
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "other")
        mode = stat.S_IMODE(status.st_mode)
        if kind == "folder":
            return cls(kind, mode)
        fine = status.st_ctime_ns % _SECOND or status.st_mtime_ns % _SECOND
        fresh = time.time_ns() - status.st_ctime_ns < (_TICK if fine else 2 * _SECOND)
        times = status.st_mtime_ns, status.st_ctime_ns
        return cls(kind, mode, status.st_size, *times, status.st_ino, status.st_nlink, held, fresh)

    @property
    def kept(self) -> bool:
        """Whether it can be brought back."""
        return self.kind == "folder" or (self.kind in ("file", "link") and bool(self.held))

    def as_before(self, status: os.stat_result) -> bool:
        """Whether a look says that nothing has happened to it."""
        return (
            not self.fresh
            and (self.modified, self.changed) == (status.st_mtime_ns, status.st_ctime_ns)
            and (self.size, self.inode) == (status.st_size, status.st_ino)
            and self.mode == stat.S_IMODE(status.st_mode)
            and self.kind == _KINDS.get(stat.S_IFMT(status.st_mode), "other")
        )

    def row(self) -> list[Any]:
        return [self.kind, self.mode, self.size, self.modified, self.changed, self.inode, self.names, self.held]


def same(one: Entry | None, other: Entry | None) -> bool:
    """Whether two looks saw the same thing: kind, mode and content; the times count only where no content is kept."""
    if one is None or other is None:
        return one is other
    if (one.kind, one.mode if one.kind != "link" else 0) != (other.kind, other.mode if other.kind != "link" else 0):
        return False
    if one.kind == "folder":
        return True
    if one.held and other.held:
        return one.held == other.held
    return (one.size, one.modified, one.changed, one.inode) == (other.size, other.modified, other.changed, other.inode)
