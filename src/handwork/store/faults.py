"""What SQLite's and the system's errors mean to a user: one place turns them into the store's typed errors."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from handwork.errors import JournalCorrupt, JournalError, StoreUnusable

_FULL = "the disk (or the quota) is full: free some space and go on, nothing buffered is lost meanwhile"
_HINTS = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: "the disk reports an error: check its space and health, then go on",
    sqlite3.SQLITE_READONLY: "it is read-only: make it writable, or set HANDWORK_HOME to a folder that is",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check the folder's permissions, or set HANDWORK_HOME to another folder",
    sqlite3.SQLITE_PERM: "access is denied: check its permissions, or set HANDWORK_HOME to another folder",
    sqlite3.SQLITE_BUSY: "another process keeps it locked: close that process, or try again",
    sqlite3.SQLITE_CONSTRAINT: "something else wrote these rows already: open the session anew",
}
_LITTLE = 256 * 1024
"""Bytes of free space below which an error of the disk means that it is full: SQLite does not say so of its shared memory."""
_LASTING = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EFBIG)


class StoreLocked(JournalError):
    """Another connection writes at this moment; asking again soon is expected to help."""


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's error number without the extension, 0 when the error is the Python module's own."""
    code: int = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF


def journal_error(error: sqlite3.Error, path: Path) -> JournalError:
    """The typed error for what SQLite reports about the store at `path`; the caller raises it `from` the original."""
    code = primary_code(error)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return corrupt(path, str(error))
    if code == sqlite3.SQLITE_IOERR and _is_full(path):
        return JournalError(f"The store {path} failed ({os.strerror(errno.ENOSPC)})", hint=_FULL)
    hint = _HINTS.get(code, "check the disk and the file, then try again")
    kind = StoreLocked if code == sqlite3.SQLITE_BUSY else StoreUnusable if code in _LASTING else JournalError
    return kind(f"The store {path} failed ({error})", hint=hint)


def _is_full(path: Path) -> bool:
    with suppress(OSError):
        disk = os.statvfs(path.parent)
        return disk.f_bavail * disk.f_frsize < _LITTLE
    return False


def corrupt(path: Path, why: str) -> JournalCorrupt:
    """The error of a damaged file, with the ways on."""
    return JournalCorrupt(
        f"The store {path} is damaged ({why}). Nothing was changed or deleted",
        hint=f"restore the file from a backup, or move it away, together with {path.name}-wal and {path.name}-shm if they are "
        "there, to begin anew. From Python, Store.open(path, recover=True) sets it aside and carries over every row that can "
        "be read",
    )


def system_error(error: OSError, path: Path) -> JournalError:
    """The typed error for a folder or file that the system does not give us."""
    what = f"The store {path} cannot be used ({error.strerror or error})"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return JournalError(what, hint=_FULL)
    kind = JournalError if error.errno in _PASSING else StoreUnusable
    return kind(
        what, hint="check the folder's permissions and space, or set HANDWORK_HOME to a folder that is writable"
    )
