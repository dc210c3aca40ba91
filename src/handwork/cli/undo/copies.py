"""The contents that /undo keeps: one file each, outside of the workspace, named by its hash."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection
from pathlib import Path

_CHUNK = 1 << 20
_CLONE = 0x40049409  # Linux' FICLONE: a copy that shares its blocks, where the file system can


class Damaged(Exception):
    """A kept content is gone, or is not what it was."""


class Copies:
    """`size` is the bytes of all contents. What a write to the folder raises (no space left) is an OSError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._sizes = {path.name: path.stat().st_size for path in folder.iterdir() if not path.name.startswith(".")}

    @property
    def size(self) -> int:
        return sum(self._sizes.values())

    def __contains__(self, digest: str) -> bool:
        return digest in self._sizes

    def keep(self, source: int, largest: int) -> str | None:
        """Keep what a descriptor reads; its SHA-256, or None if it cannot be read or is larger than `largest` by now."""
        temporary = self._folder / ".incoming"
        temporary.unlink(missing_ok=True)
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            digest = self._take(source, fd, largest)
            if digest is not None and digest not in self._sizes:
                self._sizes[digest] = os.fstat(fd).st_size
                temporary.rename(self._folder / digest)
        finally:
            os.close(fd)
            temporary.unlink(missing_ok=True)
        return digest

    def _take(self, source: int, fd: int, largest: int) -> str | None:
        cloned = _clone(source, fd)
        hashed, total = hashlib.sha256(), 0
        while True:
            try:
                chunk = os.read(fd if cloned else source, _CHUNK)
            except OSError:
                return None
            if not chunk:
                return hashed.hexdigest()
            total += len(chunk)
            if total > largest:
                return None
            hashed.update(chunk)
            if not cloned:
                write_all(fd, chunk)

    def fetch(self, digest: str, write: Callable[[bytes], object]) -> None:
        """Hand a content on, piece by piece. Raises Damaged at the end if it was not what its name says."""
        hashed = hashlib.sha256()
        try:
            with (self._folder / digest).open("rb") as file:
                while chunk := file.read(_CHUNK):
                    hashed.update(chunk)
                    write(chunk)
        except FileNotFoundError as error:
            raise Damaged from error
        if hashed.hexdigest() != digest:
            raise Damaged

    def drop_all_but(self, wanted: Collection[str]) -> None:
        for digest in [digest for digest in self._sizes if digest not in wanted]:
            (self._folder / digest).unlink(missing_ok=True)
            del self._sizes[digest]


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _clone(source: int, fd: int) -> bool:
    try:
        import fcntl

        fcntl.ioctl(fd, _CLONE, source)
    except (ImportError, OSError):
        return False
    return True
