"""The store's tables, and how an older file becomes a newer one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from handwork.errors import StoreUnusable
from handwork.store.faults import corrupt

APPLICATION = 0x486E6477  # "Hndw": tells our files from any other program's SQLite files

# Events are appended in order of arrival and found by an index. Clustering them by session instead (WITHOUT ROWID, or the
# session in the upper half of the row's number) was measured at twice the CPU for 200 sessions at a gate: every one of
# them would touch a page of its own.
# `turn` orders sessions by their last activity without trusting the clock. `pid`, `host` and `since` say who writes, or
# wrote last; whether somebody does now is only known to the lock.
MIGRATIONS: Sequence[Sequence[str]] = (
    (
        """CREATE TABLE sessions (
            number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, created TEXT NOT NULL, updated TEXT NOT NULL,
            turn INTEGER NOT NULL, workspace TEXT NOT NULL, title TEXT NOT NULL, agent TEXT NOT NULL, model TEXT NOT NULL,
            status TEXT NOT NULL, steps INTEGER NOT NULL, cost REAL, pid INTEGER, host TEXT, since TEXT)""",
        "CREATE INDEX sessions_by_turn ON sessions (turn)",
        "CREATE INDEX sessions_by_workspace ON sessions (workspace, turn)",
        """CREATE TABLE events (
            session INTEGER NOT NULL REFERENCES sessions (number), seq INTEGER NOT NULL, data BLOB NOT NULL,
            UNIQUE (session, seq))""",
        "CREATE TABLE blobs (hash TEXT PRIMARY KEY, data BLOB NOT NULL)",
    ),
)
"""Statements that bring a file from version i to i + 1; the number of entries is the current version. Append only."""


def migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring the file to the current version in one transaction; a new file starts at version 0.

    Raises StoreUnusable for a file of a newer version or of another program, JournalCorrupt for one that lost its tables.
    """
    if check_tables(connection, path, migrations) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = check_tables(connection, path, migrations)  # another process may have been first
        for statements in migrations[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def check_tables(connection: sqlite3.Connection, path: Path, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> int:
    """The file's version, 0 for a new one; nothing is changed. Raises what `migrate` does."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if application != APPLICATION and (tables or application):
        raise StoreUnusable(
            f"{path} is another program's SQLite file, not a store", hint="choose another path for the store"
        )
    if version > len(migrations):
        raise StoreUnusable(
            f"The store {path} has version {version}, this Handwork reads up to version {len(migrations)}",
            hint="update Handwork, or choose another store: set HANDWORK_HOME to a new folder",
        )
    if version and not {"sessions", "events", "blobs"} <= tables:
        raise corrupt(path, "tables are missing")
    return int(version)
