"""The folder that a conversation's copies lie in: private, used by one program at a time, and gone when nothing needs it."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

_LOCK = "undo.lock"
_WEEK = 7 * 24 * 3600


class UndoFolder:
    """Opened by open(), which takes its lock. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    def open(self) -> Path:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        self._lock = _lock(self.path)
        if self._lock is None:
            raise OSError("another program works in this conversation")
        os.utime(self.path)
        self._sweep()
        return self.path

    def close(self, keep: bool) -> None:
        if self._lock is None:
            return
        if not keep:
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
        self._lock = None

    def _sweep(self) -> None:
        """Folders of conversations that were not used for a week, as a crash or a closed chat left them."""
        for other in self.path.parent.iterdir():
            with contextlib.suppress(OSError):
                if other != self.path and (other / _LOCK).is_file() and time.time() - other.stat().st_mtime > _WEEK:
                    _remove(other)


def _remove(folder: Path) -> None:
    if (lock := _lock(folder)) is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _lock(folder: Path) -> int | None:
    """A descriptor that holds the lock until it is closed; None if another program has it."""
    import fcntl

    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd
