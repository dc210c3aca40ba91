"""What protected files held when a sandbox started, for places that nothing holds read-only: compared, and put back."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from handwork.sandbox import beneath

_LARGEST, _ALL = 1 << 20, 32 << 20
"""Bytes of one file, and of all together: they are in our memory."""
_MOST, _DEEPEST = 2000, 64


class Turns:
    """Some of many at a time, so that each has its turn; of a list that may grow."""

    def __init__(self, items: list[str]) -> None:
        self._items, self._next = items, 0

    def take(self, most: int | None) -> list[str]:
        """The next `most`, in order; all for None, and where there are no more."""
        if most is None or len(self._items) <= most:
            return list(self._items)
        start, self._next = self._next, (self._next + most) % len(self._items)
        return (self._items + self._items)[start : start + most]


@dataclass(frozen=True)
class _Kept:
    """One file, folder or link: its mode, its content (of a link its target), and marks that no program can forge."""

    mode: int
    content: bytes
    marks: tuple[int, int, int]


class Keepsakes:
    """Copies in memory of the protected paths that were given to it, each with all below it."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._kept: dict[str, _Kept] = {}
        self._order: list[str] = []
        self._turns = Turns(self._order)
        self._left = _ALL
        self._open = set[str]()
        """Folders of which not all is kept, so that nobody knows what is new there."""
        self.too_large: list[str] = []
        """Paths that are left out: large files, full folders, and what comes after the first thousands."""

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, path: str) -> None:
        """Remember a path with all below it; one that is not there is not."""
        waiting = [path]
        while waiting:
            path = waiting.pop()
            status = beneath.look(self._root, path)
            if status is None:
                continue
            if not self._has_room(path, status):
                self.too_large.append(path)
                continue
            self._keep_one(path, status)
            if stat.S_ISDIR(status.st_mode):
                names = beneath.names(self._root, path)
                if len(self._kept) + len(waiting) + len(names) > _MOST or path.count("/") > _DEEPEST:
                    self.too_large.append(path)
                    self._open.add(path)
                else:
                    waiting += [f"{path}/{name}" for name in names]

    def _has_room(self, path: str, status: os.stat_result) -> bool:
        if path in self._kept:
            return True
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        return len(self._kept) < _MOST and size <= min(_LARGEST, self._left)

    def _keep_one(self, path: str, status: os.stat_result) -> None:
        content = self._content(path, status)
        if content is None:
            return
        if path not in self._kept:
            self._order.append(path)
            self._left -= len(content)
        self._kept[path] = _Kept(status.st_mode, content, _marks(status))

    def changed(self, most: int | None = None) -> list[str]:
        """Of all, or of the next `most`: the paths whose files are no longer what they were, folders first, and what is new in a
        folder that was kept.

        Where the folder around it is gone (or a link now) nothing lies there that anybody would run, and nothing is said.
        """
        found: list[str] = []
        for path in self._turns.take(most):
            kept = self._kept[path]
            around = path.rpartition("/")[0]
            if around in found or (around and not _is_folder(beneath.look(self._root, around))):
                continue
            status = beneath.look(self._root, path)
            if status is None or stat.S_IFMT(status.st_mode) != stat.S_IFMT(kept.mode):
                found.append(path)
            elif path in self._open:
                continue
            elif stat.S_ISDIR(kept.mode):
                inner = (f"{path}/{name}" for name in beneath.names(self._root, path))
                found += [each for each in inner if each not in self._kept and each not in self.too_large]
            elif _marks(status) != kept.marks:
                if self._content(path, status) == kept.content and status.st_mode == kept.mode:
                    self._kept[path] = _Kept(kept.mode, kept.content, _marks(status))
                else:
                    found.append(path)
        return found

    def put_back(self, path: str) -> None:
        """Make a path, and all below it, what it was; what stood there must be gone. Raises OSError."""
        for each in [name for name in self._kept if name == path or name.startswith(f"{path}/")]:
            kept = self._kept[each]
            if stat.S_ISREG(kept.mode):
                beneath.write(self._root, each, kept.content, stat.S_IMODE(kept.mode))
            else:
                with beneath.parent_of(self._root, each) as (folder, name):
                    if stat.S_ISDIR(kept.mode):
                        os.mkdir(name, stat.S_IMODE(kept.mode), dir_fd=folder)
                    else:
                        os.symlink(kept.content, os.fsencode(name), dir_fd=folder)
            if (status := beneath.look(self._root, each)) is not None:
                self._kept[each] = _Kept(kept.mode, kept.content, _marks(status))

    def _content(self, path: str, status: os.stat_result) -> bytes | None:
        if stat.S_ISREG(status.st_mode):
            return beneath.read(self._root, path, _LARGEST + 1)
        if stat.S_ISLNK(status.st_mode):
            try:
                with beneath.parent_of(self._root, path) as (folder, name):
                    return os.readlink(os.fsencode(name), dir_fd=folder)
            except OSError:  # it went away between two looks
                return None
        return b"" if stat.S_ISDIR(status.st_mode) else None


def _marks(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_ctime_ns, status.st_size


def _is_folder(status: os.stat_result | None) -> bool:
    return status is not None and stat.S_ISDIR(status.st_mode)
