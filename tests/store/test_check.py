"""Looking at a store: what it holds, whether it is whole, whether it can be written; and nothing of it changes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from handwork.errors import JournalCorrupt, JournalError
from handwork.store.check import check_store
from handwork.store.sqlite import Store
from handwork.store.tables import MIGRATIONS
from tests.store.samples import begin, notice


async def test_sessions_size_and_version_are_told(path: Path, store: Store) -> None:
    journal = begin(store)
    journal.append(notice(journal))
    await journal.commit()
    checked = check_store(path)
    assert (checked.sessions, checked.version, checked.whole) == (1, len(MIGRATIONS), True)
    assert checked.bytes > 0


def test_a_file_that_is_too_large_for_the_time_is_not_called_whole(path: Path) -> None:
    Store.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.executemany("INSERT INTO blobs VALUES (?, ?)", [(f"hash {n}", b"x" * 500) for n in range(5000)])
    connection.close()
    assert check_store(path, seconds=0).whole is None
    assert check_store(path, seconds=30).whole is True


def test_damage_in_the_middle_is_found(path: Path) -> None:
    Store.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.executemany("INSERT INTO blobs VALUES (?, ?)", [(f"hash {n}", b"x" * 500) for n in range(5000)])
    connection.close()
    data = bytearray(path.read_bytes())
    data[-3 * 4096 : -2 * 4096] = b"\xff" * 4096
    path.write_bytes(data)
    with pytest.raises(JournalCorrupt, match="Nothing was changed"):
        check_store(path, seconds=30)
    assert path.read_bytes() == bytes(data)


def test_a_store_that_another_program_keeps_locked_is_an_error_that_passes(path: Path) -> None:
    Store.open(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(JournalError, match="another process keeps it locked"):
            check_store(path)
    finally:
        other.close()
    assert check_store(path).whole
