"""The workspace as /undo sees and touches it: by descriptors from its root on, so that no swapped link leads elsewhere."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from handwork.cli.undo.entries import IGNORED, LARGEST, Entry

FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_WAY = getattr(os, "O_PATH", os.O_RDONLY) | FOLDER
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_GIT = ("HEAD", "logs/HEAD", "packed-refs", "config", "refs/heads", "refs/tags", "hooks", "MERGE_HEAD")
_DEEPEST = 100
_CHUNK = 1 << 20


class TooMany(Exception):
    """There are more things than /undo looks after."""


@dataclass(slots=True)
class Found:
    """`opaque`: folders (with `/` behind) and things whose content nobody could see; `git`: marks of each repository's state."""

    entries: dict[str, Entry] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    git: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def hides(self, path: str) -> bool:
        """Whether nothing is known of what was at this path."""
        return path in self.opaque or any({above, f"{above}/"} & self.opaque for above in _above(path))


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


class Tree:
    """`private` folders (their real places) are never entered. Raises OSError if the root is no folder."""

    def __init__(self, root: Path, private: Sequence[Path]) -> None:
        self.root = root
        self._fd = os.open(root, FOLDER)
        self._here = os.fstat(self._fd)
        self._private = {_place(os.stat(folder)) for folder in private if folder.is_dir()}

    @property
    def place(self) -> tuple[int, int]:
        """Device and inode of the root."""
        return _place(self._here)

    def close(self) -> None:
        os.close(self._fd)

    def is_there(self) -> bool:
        """Whether the path still leads to the folder that was opened."""
        try:
            return _place(os.stat(self.root, follow_symlinks=False)) == _place(self._here)
        except OSError:
            return False

    def walk(self, known: Mapping[str, Entry], most: int) -> Found:
        """Everything below; what has not changed is the known entry itself. Raises TooMany."""
        found = Found()
        self._walk(os.dup(self._fd), "", 0, known, most, found)
        return found

    def _walk(self, fd: int, prefix: str, depth: int, known: Mapping[str, Entry], most: int, found: Found) -> None:
        folders = []
        try:
            with os.scandir(fd) as listed:
                for entry in listed:
                    if self._meet(fd, entry, prefix + entry.name, known, found):
                        folders.append(entry.name)
                    if len(found.entries) > most:
                        raise TooMany
            for name in folders:
                self._enter(fd, name, prefix + name, depth + 1, known, most, found)
        except OSError:
            found.opaque.add(prefix or "/")
            if not prefix:
                raise
        finally:
            os.close(fd)

    def _meet(self, fd: int, entry: os.DirEntry[str], path: str, known: Mapping[str, Entry], found: Found) -> bool:
        """Note one thing; whether it is a folder to enter."""
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            found.opaque.add(path)
            return False
        is_folder = stat.S_ISDIR(status.st_mode)
        if entry.name == ".git":
            found.git[path] = tuple(_mark(fd, f".git/{name}") for name in ("", *_GIT))
        if entry.name == ".git" or (is_folder and (entry.name in IGNORED or _place(status) in self._private)):
            return False
        old = known.get(path)
        found.entries[path] = old if old is not None and not is_folder and old.as_before(status) else Entry.of(status)
        if is_folder and status.st_dev != self._here.st_dev:
            found.opaque.add(f"{path}/")
            return False
        return is_folder

    def _enter(
        self, fd: int, name: str, path: str, depth: int, known: Mapping[str, Entry], most: int, found: Found
    ) -> None:
        try:
            if depth > _DEEPEST:
                raise OSError(errno.ELOOP, "too deep")
            below = os.open(name, FOLDER, dir_fd=fd)
        except OSError:
            found.opaque.add(f"{path}/")
            return
        self._walk(below, f"{path}/", depth, known, most, found)

    @contextlib.contextmanager
    def parent(self, path: str) -> Iterator[tuple[int, str]]:
        """A descriptor of the folder that holds a path, and the last name. Raises OSError where a link stands in the way."""
        *folders, name = path.split("/")
        fd = os.dup(self._fd)
        try:
            for folder in folders:
                above, fd = fd, os.open(folder, _WAY, dir_fd=fd)
                os.close(above)
            yield fd, name
        finally:
            os.close(fd)

    def open(self, path: str) -> int:
        """A descriptor of a regular file. Raises OSError, for anything else, too."""
        with self.parent(path) as (folder, name):
            fd = os.open(name, _FILE, dir_fd=folder)
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
        raise OSError(errno.EINVAL, "no regular file")

    def look(self, path: str) -> Entry | None:
        """What is there now, with its content's hash; None if nothing is, or no way leads there."""
        try:
            with self.parent(path) as (folder, name):
                return look_at(folder, name)
        except (FileNotFoundError, NotADirectoryError):
            return None


def look_at(folder: int, name: str) -> Entry | None:
    """What stands in a folder under a name, with its content's hash. Raises OSError."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return Entry.of(status, os.readlink(name, dir_fd=folder))
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
        return Entry.of(status)
    try:
        fd = os.open(name, _FILE, dir_fd=folder)
    except PermissionError:
        return Entry.of(status)
    try:
        return Entry.of(status, _digest(fd))
    finally:
        os.close(fd)


def _digest(fd: int) -> str:
    digest = hashlib.sha256()
    while chunk := os.read(fd, _CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _place(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _mark(folder: int, path: str) -> int:
    try:
        status = os.stat(path, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return -1
    return status.st_mtime_ns if path != ".git/" else status.st_ino
