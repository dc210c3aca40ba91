"""Whether a store's files still stand where they were opened: SQLite goes on writing to deleted ones without a word."""

from __future__ import annotations

import os
from pathlib import Path

from handwork.errors import JournalError

_SUFFIXES = ("", "-wal", "-shm", "-lock")
_Identity = tuple[int, int] | None


class Presence:
    """The device and inode of each file of an open store; made as soon as it is open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._names = [str(path.with_name(path.name + suffix)) for suffix in _SUFFIXES]
        self._opened = [_identity(name) for name in self._names]
        if None in self._opened:
            raise JournalError(f"The store {path} was deleted while it was being opened: try again")

    def check(self) -> None:
        """Raise JournalError, naming the files, if one was deleted or another one was put in its place."""
        for name, opened in zip(self._names, self._opened, strict=True):
            if (now := _identity(name)) != opened:
                raise JournalError(
                    f"{name} was {'replaced' if now else 'deleted'} while it was open: what is done now could not be kept, and "
                    f"what was done before may be lost. Find out what changes {self._path.parent}, put the file back if you "
                    "can, and begin a new session"
                )

    def is_gone(self) -> bool:
        """Whether nothing of it is where it was, so that a new store can be made there without touching this one."""
        return all(_identity(name) != opened for name, opened in zip(self._names[:3], self._opened[:3], strict=True))


def _identity(file: str) -> _Identity:
    try:
        found = os.stat(file)  # at every gate: a Path takes four times as long
    except OSError:
        return None
    return found.st_dev, found.st_ino
