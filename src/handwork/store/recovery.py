"""A damaged file: what can be read of it goes into a new one, the damaged one is set aside and never changed."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from handwork.errors import SessionBusy
from handwork.store.connection import connect
from handwork.store.facts import now
from handwork.store.faults import journal_error, system_error
from handwork.store.locks import LockFile

_COLUMNS = "number, id, created, updated, turn, workspace, title, agent, model, status, steps, cost, pid, host, since"
_ADD_SESSION = f"INSERT OR IGNORE INTO sessions ({_COLUMNS}) VALUES (?{', ?' * _COLUMNS.count(',')})"
# A session goes on after its last event, so only an unbroken beginning of it is one; what was read beyond a gap is kept here.
_LOOSE = "CREATE TABLE loose_events (session INTEGER NOT NULL, seq INTEGER NOT NULL, data BLOB NOT NULL)"


def lock_path(path: Path) -> Path:
    """The file of a store's locks."""
    return path.with_name(path.name + "-lock")


def recover(path: Path) -> tuple[Path, int]:
    """Read what can be read of a damaged store into a new store beside it; returns the new file and how many events it has.

    The damaged file is not touched. Events that follow a gap in their session are counted too and kept in the table
    `loose_events`. Raises SessionBusy while anybody has the store open, JournalError if the new file cannot be written.
    """
    locks = LockFile(lock_path(path))
    try:
        _alone(path, locks)
        return _salvage(path, _stamp())
    finally:
        locks.close()


def replace(path: Path, locks: LockFile) -> str:
    """Put a recovered store in the place of a damaged one; returns what to tell the user. `locks` stay held throughout."""
    _alone(path, locks)
    stamp = _stamp()
    recovered, count = _salvage(path, stamp)
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    try:
        for suffix in ("-wal", "-shm", ""):
            part = path.with_name(path.name + suffix)
            if part.exists():
                part.rename(aside.with_name(aside.name + suffix))
        recovered.rename(path)
    except OSError as error:
        raise system_error(error, path) from error
    locks.use()
    return (
        f"The store was damaged: {count} events could be read and are kept, the damaged file was set aside as {aside}"
    )


def _alone(path: Path, locks: LockFile) -> None:
    if not locks.use(alone=True):
        raise SessionBusy(f"The damaged store {path} is still open elsewhere", hint="close every other Handwork first")


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")


def _salvage(path: Path, stamp: str) -> tuple[Path, int]:
    recovered = path.with_name(f"{path.name}.recovered-{stamp}")
    try:
        with tempfile.TemporaryDirectory(prefix=".recover-", dir=path.parent) as folder:
            copy = _copy(path, Path(folder))
            target = connect(recovered)
            try:
                return recovered, _carry_over(copy, target)
            except sqlite3.Error as error:
                raise journal_error(error, recovered) from error
            finally:
                target.close()
    except OSError as error:
        raise system_error(error, recovered) from error


def _copy(path: Path, folder: Path) -> Path:
    """A copy to read from, with its log; a file that was cut is filled up with zeros, or SQLite would read nothing of it."""
    copy = folder / "store.db"
    log = path.with_name(path.name + "-wal")
    if path.exists():
        shutil.copyfile(path, copy)
    else:
        copy.touch()
    if log.exists():
        shutil.copyfile(log, folder / "store.db-wal")
    with copy.open("r+b") as file:
        header = file.read(100)
        size = int.from_bytes(header[16:18], "big")  # the header's page size (1 means 65536) and number of pages
        size = (65536 if size == 1 else size) * int.from_bytes(header[28:32], "big")
        file.seek(0, 2)
        if file.tell() < size < 1 << 40:
            file.truncate(size)
    return copy


def _carry_over(copy: Path, target: sqlite3.Connection) -> int:
    source = sqlite3.connect(copy, isolation_level=None)
    try:
        target.execute("BEGIN IMMEDIATE")
        for row in _both_ways(source, f"SELECT {_COLUMNS} FROM sessions ORDER BY number", ()):
            if _well_formed(row):
                target.execute(_ADD_SESSION, row)
        for row in _both_ways(source, "SELECT hash, data FROM blobs ORDER BY rowid", ()):
            target.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", row)
        target.execute("CREATE TEMP TABLE found (session INTEGER, seq INTEGER, data BLOB, UNIQUE (session, seq))")
        _find_events(source, target)
        count = _sort_events(target)
        target.execute("COMMIT")
        return count
    finally:
        source.close()


def _find_events(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Through the table first, then through its index, which leads to rows behind a damaged page of the table."""
    add = "INSERT OR IGNORE INTO found VALUES (?, ?, ?)"
    for row in _both_ways(source, "SELECT session, seq, data FROM events ORDER BY rowid", ()):
        _keep(target, add, row)
    for (number,) in target.execute("SELECT number FROM sessions").fetchall():
        through_index = "SELECT session, seq, data FROM events WHERE session = ? ORDER BY seq"
        for row in _both_ways(source, through_index, (number,)):
            _keep(target, add, row)


def _keep(target: sqlite3.Connection, sql: str, row: tuple[Any, ...]) -> None:
    session, seq, data = row
    if isinstance(session, int) and isinstance(seq, int) and isinstance(data, bytes) and data:
        target.execute(sql, row)


def _both_ways(source: sqlite3.Connection, sql: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The rows up to the damage, then those after it from the other end."""
    try:
        yield from _rows(source, sql, values)
    except sqlite3.Error:
        try:
            yield from _rows(source, sql + " DESC", values)
        except sqlite3.Error:
            return


def _rows(source: sqlite3.Connection, sql: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield from source.execute(sql, values)


def _well_formed(row: tuple[Any, ...]) -> bool:
    texts = (*row[1:4], *row[5:10])
    return isinstance(row[0], int) and all(isinstance(text, str) for text in texts) and isinstance(row[10], int)


def _sort_events(target: sqlite3.Connection) -> int:
    """Unbroken beginnings become the sessions' events, the rest is kept aside; returns how many there are in all."""
    target.execute(_LOOSE)
    count = 0
    session = expected = 0
    rows = target.execute("SELECT session, seq, data FROM found ORDER BY session, seq").fetchall()
    for number, seq, data in rows:
        if number != session:
            session, expected = number, 1
            _ensure_session(target, number, data)
        unbroken = seq == expected
        target.execute(f"INSERT INTO {'events' if unbroken else 'loose_events'} VALUES (?, ?, ?)", (number, seq, data))
        expected = expected + 1 if unbroken else 0
        count += 1
    return count


def _ensure_session(target: sqlite3.Connection, number: int, data: bytes) -> None:
    """A session whose own row was lost gets its name from its events."""
    if target.execute("SELECT 1 FROM sessions WHERE number = ?", (number,)).fetchone():
        return
    try:
        name = str(from_json(data)["session_id"]) or f"recovered-{number}"
    except (ValueError, LookupError, TypeError):
        name = f"recovered-{number}"
    if target.execute("SELECT 1 FROM sessions WHERE id = ?", (name,)).fetchone():
        name = f"{name}-recovered-{number}"
    values = (number, name, now(), now(), number, "", "", "", "", "", 0, None, None, None, None)
    target.execute(_ADD_SESSION, values)
