"""Opening the store's file: folder and permissions, write-ahead log, tables."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from handwork.errors import JournalError, StoreUnusable
from handwork.store.faults import StoreLocked, corrupt, journal_error, system_error
from handwork.store.tables import migrate

_OPEN_PATIENCE = 2.0
"""Seconds that opening waits for another process that creates, migrates or recovers the file."""
_BUSY_MS = 2
"""How long SQLite itself may block the loop for another process's transaction; the gate waits longer, without blocking."""
_KEPT_LOG = 16 << 20


def prepare(path: Path) -> None:
    """Make the store's folder (0700) if it is missing. Raises JournalError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise system_error(error, path.parent) from error


def connect(path: Path, *, synchronous: str = "normal") -> sqlite3.Connection:
    """A connection in autocommit mode to the store at `path`, created with mode 0600 and brought to the current version.

    Raises JournalCorrupt for a damaged file, JournalError for one that cannot be used.
    """
    _create(path)
    until = time.monotonic() + _OPEN_PATIENCE
    while True:
        try:
            return _open(path, synchronous)
        except StoreLocked:  # the switch to the write-ahead log does not wait by itself
            if time.monotonic() >= until:
                raise
            time.sleep(0.01)


def _create(path: Path) -> None:
    log = path.with_name(path.name + "-wal")
    try:
        if log.exists() and log.stat().st_size and not (path.exists() and path.stat().st_size):
            raise corrupt(path, "it is empty, but its write-ahead log is not")  # SQLite would delete the log
        # Never open a file that is there: closing the descriptor would drop the locks that SQLite holds on it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise system_error(error, path) from error


def _open(path: Path, synchronous: str) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, timeout=_OPEN_PATIENCE, isolation_level=None)
    except sqlite3.Error as error:
        raise journal_error(error, path) from error
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreUnusable(
                f"The store {path} is on a file system that SQLite cannot share safely",
                hint="choose a local one: set HANDWORK_HOME to a folder on it",
            )
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # a thread does it: see wal.py
        connection.execute(f"PRAGMA journal_size_limit = {_KEPT_LOG}")
        set_synchronous(connection, synchronous)
        _check_length(connection, path)
        migrate(connection, path)
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    except sqlite3.Error as error:
        connection.close()
        raise journal_error(error, path) from error
    except OSError as error:
        connection.close()
        raise system_error(error, path) from error
    except JournalError:
        connection.close()
        raise
    return connection


def _check_length(connection: sqlite3.Connection, path: Path) -> None:
    """SQLite notices missing pages, but takes a last page that was cut for one that ends in zeros."""
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    log = path.with_name(path.name + "-wal")
    if path.stat().st_size % size and not (log.exists() and log.stat().st_size):  # else the log has the page
        raise corrupt(path, "its last page is cut")


def set_synchronous(connection: sqlite3.Connection, synchronous: str) -> None:
    """normal: commits survive the program's death; full: a power cut too, at a disk flush a commit."""
    connection.execute(f"PRAGMA synchronous = {'FULL' if synchronous == 'full' else 'NORMAL'}")
