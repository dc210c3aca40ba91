"""Whether a store's file is whole and can be written, found out without changing a byte of it."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from handwork.store.faults import corrupt, journal_error, primary_code
from handwork.store.tables import check_tables

_OFTEN = 1000
"""Steps of SQLite's machine between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Checked:
    """`whole` is None where the time did not suffice to read all of the file."""

    sessions: int
    bytes: int
    version: int
    whole: bool | None


def check_store(path: Path, *, seconds: float = 2.0) -> Checked:
    """Look at a store that is there: its kind and version, every page of it (as far as the time goes), and whether it can be written.

    Raises JournalCorrupt for a damaged file, StoreUnusable for one that this program cannot use, JournalError for the rest.
    """
    try:
        with _connected(path) as connection:
            version = check_tables(connection, path)
            whole = _is_whole(connection, path, seconds)
            sessions = connection.execute("SELECT count(*) FROM sessions").fetchone()[0] if version else 0
            connection.execute("BEGIN IMMEDIATE")  # what a writer needs: the lock, and a log that can be opened
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise journal_error(error, path) from error
    return Checked(sessions, path.stat().st_size, version, whole)


@contextlib.contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=1.0, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def _is_whole(connection: sqlite3.Connection, path: Path, seconds: float) -> bool | None:
    until = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() >= until, _OFTEN)
    try:
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
    except sqlite3.OperationalError as error:
        if primary_code(error) == sqlite3.SQLITE_INTERRUPT:
            return None
        raise
    finally:
        connection.set_progress_handler(None, 0)
    if found != ["ok"]:
        raise corrupt(path, "; ".join(found)[:300])
    return True
