"""What the disk and the system may do to a store: a typed error that says what to do, and the session goes on afterwards."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest

from handwork.errors import JournalCorrupt, JournalError
from handwork.store import wal
from handwork.store.sqlite import Store
from handwork.store.tables import MIGRATIONS, migrate
from tests.store.samples import begin, heard, notice, program, texts


async def test_a_full_disk_stops_every_session_of_the_gate_and_all_go_on_when_there_is_space(store: Store) -> None:
    journals = [begin(store) for _ in range(3)]
    store._connection.execute("PRAGMA max_page_count = 20")
    for journal in journals:
        journal.append(notice(journal, "x" * 50_000))
    errors = await asyncio.gather(*(journal.commit() for journal in journals), return_exceptions=True)
    assert [type(error) for error in errors] == [JournalError] * 3
    for error in errors:
        assert isinstance(error, JournalError)
        assert "free some space" in error.hint
        assert str(store.path) in error.what
        assert str(error) == f"{error.what} – {error.hint}"
    assert len(set(map(id, errors))) == 3
    assert store.sessions() == []
    assert not store._connection.in_transaction
    store._connection.execute("PRAGMA max_page_count = 1000000")
    journals[0].append(notice(journals[0], "more"))
    await asyncio.gather(*(journal.commit() for journal in journals))
    for journal in journals:
        assert [event.seq for event in journal.replay()] == list(range(1, journal.seq + 1))
    assert texts(store, journals[0].session_id)[1] == "more"


async def test_a_file_that_may_not_grow_is_an_error_and_no_end(path: Path) -> None:
    """The system's own limit, as a quota or a full disk: the write itself fails in the middle."""
    body = """
    import resource
    store = Store.open(path)
    journal = store.begin("mine", workspace="/w", create=True)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    passed = 0
    while True:
        for _ in range(3):
            journal.append(notice(journal, "x" * 5000))
        try:
            await journal.commit()
        except JournalError as error:
            say("failed", passed, journal.seq, "space" in str(error))
            break
        passed = journal.seq
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await journal.commit()
    journal.append(notice(journal))
    await journal.commit()
    say("went on", [event.seq for event in journal.replay()] == list(range(1, journal.seq + 1)))
    store.close()
    say("closed")
    """
    with program(body, path) as child:
        _, passed, seq, told = heard(child).split()
        assert 0 < int(passed) < int(seq)
        assert told == "True"
        assert heard(child) == "went on True"
        assert heard(child) == "closed"
    store = Store.open(path)
    assert len(list(store.events("mine"))) == int(seq) + 1
    store.close()


async def test_a_store_closed_with_rows_that_cannot_be_written_says_so_and_is_closed(path: Path) -> None:
    store = Store.open(path)
    journal = begin(store)
    journal.append(notice(journal))
    store._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(JournalError, match="read-only"):
        store.close()
    with pytest.raises(JournalError, match="is closed"):
        store.sessions()
    Store.open(path).close()


READ_ONLY = """
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
try:
    Store.open(path)
except JournalError as error:
    say(type(error).__name__, str(error))
else:
    say("opened")
"""


@pytest.mark.parametrize("state", ["no folder", "no file", "a file"])
def test_a_read_only_folder_is_named_with_what_to_do(state: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "sub" / "store.db" if state == "no folder" else folder / "store.db"
        if state == "a file":
            Store.open(path).close()
            path.chmod(0o444)
        folder.chmod(0o555)
        with program(READ_ONLY, path) as child:
            kind, _, message = heard(child).partition(" ")
        folder.chmod(0o755)
        assert kind == "StoreUnusable"
        assert str(folder) in message
        assert "HANDWORK_HOME" in message


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError, match="file"):
        Store.open(tmp_path / "file" / "store.db")
    with pytest.raises(JournalError):
        Store.open(tmp_path)


# ---- versions


def _version(path: Path, version: int) -> None:
    Store.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def test_a_newer_store_is_refused_and_left_alone(path: Path) -> None:
    _version(path, 99)
    before = path.read_bytes()
    with pytest.raises(JournalError, match=f"version 99, this Handwork reads up to version {len(MIGRATIONS)}"):
        Store.open(path)
    assert path.read_bytes() == before


async def test_an_older_store_is_brought_up_to_date_and_then_refused_by_the_older_program(path: Path) -> None:
    store = Store.open(path)
    journal = begin(store, "old")
    journal.append(notice(journal))
    await journal.commit()
    newer = (*MIGRATIONS, ("ALTER TABLE sessions ADD COLUMN colour TEXT", "UPDATE sessions SET colour = 'red'"))
    migrate(store._connection, path, newer)
    migrate(store._connection, path, newer)
    assert store._connection.execute("SELECT colour FROM sessions").fetchall() == [("red",)]
    assert texts(store, "old") == ["hello"]
    with pytest.raises(JournalError, match="update Handwork"):
        migrate(store._connection, path)
    store.close()


async def test_a_migration_that_fails_leaves_the_store_as_it_was(path: Path, store: Store) -> None:
    broken = (*MIGRATIONS, ("ALTER TABLE sessions ADD COLUMN colour TEXT", "INSERT INTO nowhere VALUES (1)"))
    with pytest.raises(sqlite3.OperationalError):
        migrate(store._connection, path, broken)
    migrate(store._connection, path)
    assert "colour" not in {row[1] for row in store._connection.execute("PRAGMA table_info(sessions)")}


@pytest.mark.parametrize("application", [0, 1234])
async def test_another_programs_database_is_not_taken_for_a_store(path: Path, application: int) -> None:
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.execute(f"PRAGMA application_id = {application}")
    connection.close()
    with pytest.raises(JournalError, match="another program's"):
        Store.open(path)
    with pytest.raises(JournalError, match="another program's"):
        Store.open(path, recover=True)


async def test_a_store_that_lost_its_tables_is_corrupt(path: Path) -> None:
    Store.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE events")
    connection.close()
    with pytest.raises(JournalCorrupt, match="tables are missing"):
        Store.open(path)


# ---- the write-ahead log


def size(path: Path) -> int:
    return path.stat().st_size


async def test_the_log_is_folded_into_the_file_from_a_thread_and_stays_bounded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal, "_DUE", 1 << 18)
    threads: set[str] = set()
    store = Store.open(path)
    assert store._connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (0,)
    journal = begin(store)
    largest = 0
    for _ in range(300):
        journal.append(notice(journal, "x" * 20_000))
        await journal.commit()
        if thread := store._checkpointer._thread:
            threads.add(thread.name)
        store._checkpointer.close()  # waits for one that is under way
        largest = max(largest, size(path.with_name("store.db-wal")))
    assert threads == {"handwork-checkpoint"}
    assert largest < 1 << 20  # of 8 MB that were written
    assert size(path) > 5 << 20
    assert not any(thread.name == "handwork-checkpoint" for thread in threading.enumerate())
    store.close()


async def test_a_log_that_grew_too_long_is_cut(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal, "_TOO_LONG", 1 << 16)
    store = Store.open(path)
    journal = begin(store)
    for due, cut in ((1 << 30, False), (1, True)):
        monkeypatch.setattr(wal, "_DUE", due)
        journal.append(notice(journal, "x" * 100_000))
        await journal.commit()
        store._checkpointer.close()
        assert (size(path.with_name("store.db-wal")) == 0) is cut
    store.close()


async def test_a_checkpoint_that_fails_is_told_and_tried_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wal, "_DUE", 1)
    told: list[tuple[str, str]] = []
    store = Store.open(path, notify=lambda level, text: told.append((level, text)))
    journal = begin(store)
    monkeypatch.setattr(store._checkpointer, "_path", path.parent)
    for _ in range(3):
        journal.append(notice(journal))
        await journal.commit()
        store._checkpointer.close()
    assert told
    assert told[0][0] == "warning"
    assert "log could not be folded" in told[0][1]
    store.close()
