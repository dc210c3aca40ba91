"""A damaged store: never changed and never deleted, and all that can be read of it is carried over when asked."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from handwork.errors import JournalCorrupt, SessionBusy
from handwork.events import Notice
from handwork.store.recovery import recover
from handwork.store.sqlite import Store
from tests.store.samples import begin, heard, notice, program, started, step

SESSIONS, EVENTS = 6, 60


@pytest.fixture
def whole(path: Path) -> bytes:
    """A store of several sessions, closed; its bytes."""

    async def write() -> None:
        store = Store.open(path)
        journals = [begin(store, f"s{number}") for number in range(SESSIONS)]
        for journal in journals:
            journal.append(started(journal, f"request of {journal.session_id}"))
        while journals[0].seq < EVENTS:
            for journal in journals:
                journal.append(notice(journal, f"{journal.session_id} {'x' * 300}"))
                if journal.seq % 10 == 0:
                    journal.append(step(journal))
            await asyncio.gather(*(journal.commit() for journal in journals))
        store.put_blob("h", b"picture")
        store.close()

    asyncio.run(write())
    return path.read_bytes()


def damaged(data: bytes, start: int, size: int) -> bytes:
    return data[:start] + b"\xa5" * size + data[start + size :]


def events(store: Store) -> dict[str, int]:
    """How many events each session has; all are numbered without a gap and belong to it."""
    counts = {}
    for info in store.sessions():
        journal = store.begin(info.id, workspace="/w", create=False)
        read = list(journal.replay())
        journal.close()
        assert [event.seq for event in read] == list(range(1, len(read) + 1))
        assert all(event.text.startswith(info.id) for event in read if isinstance(event, Notice))
        counts[info.id] = len(read)
    return counts


@pytest.mark.parametrize("kept", [0.02, 0.3, 0.5, 0.9, 0.999])
def test_a_file_cut_anywhere_is_corrupt_left_alone_and_recovered_when_asked(
    path: Path, whole: bytes, kept: float
) -> None:
    cut = whole[: int(len(whole) * kept)]
    path.write_bytes(cut)
    with pytest.raises(JournalCorrupt, match=r"move it away, together with .*-wal .*to begin anew.*recover=True"):
        Store.open(path)
    assert path.read_bytes() == cut
    told: list[str] = []
    store = Store.open(path, recover=True, notify=lambda level, text: told.append(text))
    (aside,) = path.parent.glob("store.db.damaged-*Z")
    assert aside.read_bytes() == cut
    assert str(aside) in told[0]
    counts = events(store)
    if kept >= 0.9:
        assert sum(counts.values()) > SESSIONS * EVENTS * 0.4
    journal = begin(store, "s0")
    journal.append(notice(journal, "s0 goes on"))
    store.close()
    assert not list(path.parent.glob(".recover-*"))
    Store.open(path).close()


@pytest.mark.parametrize("where", [0.0, 0.25, 0.5, 0.75, 0.95])
def test_a_damaged_page_costs_what_was_on_it(path: Path, whole: bytes, where: float) -> None:
    page = int(len(whole) * where) // 4096 * 4096
    path.write_bytes(damaged(whole, page, 4096))
    recovered, count = recover(path)
    assert path.read_bytes() == damaged(whole, page, 4096)
    store = Store.open(recovered)
    kept = sum(events(store).values())
    (loose,) = store._connection.execute("SELECT count(*) FROM loose_events").fetchone()
    assert kept + loose == count
    if where > 0:
        assert count > SESSIONS * EVENTS * 0.8
    store.close()


def test_the_undamaged_is_recovered_whole(path: Path, whole: bytes) -> None:
    recovered, count = recover(path)
    assert recovered.parent == path.parent
    assert recovered != path
    before, after = Store.open(path), Store.open(recovered)
    assert events(after) == events(before)
    assert sum(events(after).values()) == count
    assert before.sessions() == after.sessions()
    assert after.get_blob("h") == b"picture"
    before.close()
    after.close()


def test_a_session_whose_own_row_is_lost_is_named_by_its_events(path: Path, whole: bytes) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM sessions WHERE id IN ('s1', 's2')")
    connection.execute("UPDATE events SET data = x'00' WHERE session = 3 AND seq = 1")
    connection.commit()
    connection.close()
    recovered, count = recover(path)
    store = Store.open(recovered)
    assert {info.id for info in store.sessions()} == {"s0", "s1", "recovered-3", "s3", "s4", "s5"}
    store.close()
    assert count >= SESSIONS * EVENTS


@pytest.mark.parametrize("junk", [b"\0" * 8192, b"not a database at all" * 500, b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_is_no_database_is_corrupt_and_can_be_set_aside(path: Path, junk: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(junk)
    with pytest.raises(JournalCorrupt):
        Store.open(path)
    store = Store.open(path, recover=True)
    assert store.sessions() == []
    store.close()
    assert next(path.parent.glob("store.db.damaged-*Z")).read_bytes() == junk


def test_a_torn_log_costs_no_more_than_its_torn_end(path: Path) -> None:
    with program(WRITE_AND_WAIT, path) as child:
        assert heard(child) == "written"
    log = path.with_name("store.db-wal")
    log.write_bytes(log.read_bytes()[:-3000])
    store = Store.open(path)
    numbers = [seq for seq, _ in store.events("mine")]
    assert numbers == list(range(1, 50))
    store.close()


@pytest.mark.parametrize("rest", [b"", None])
def test_an_empty_or_missing_file_with_a_full_log_is_not_overwritten(path: Path, rest: bytes | None) -> None:
    with program(WRITE_AND_WAIT, path) as child:
        assert heard(child) == "written"
    log = path.with_name("store.db-wal")
    before = log.read_bytes()
    if rest is None:
        path.unlink()
    else:
        path.write_bytes(rest)
    with pytest.raises(JournalCorrupt, match="its write-ahead log is not"):
        Store.open(path)
    assert log.read_bytes() == before
    Store.open(path, recover=True).close()
    assert next(path.parent.glob("store.db.damaged-*Z-wal")).read_bytes() == before


async def test_a_store_that_somebody_has_open_is_not_replaced(path: Path) -> None:
    with program(WRITE_AND_WAIT, path) as child:
        assert heard(child) == "written"
        with pytest.raises(SessionBusy, match="close every other"):
            recover(path)


def test_damage_found_while_reading_is_typed_too(path: Path, whole: bytes) -> None:
    data = whole
    for page in range(3, len(whole) // 4096):
        data = damaged(data, page * 4096, 4096)
    path.write_bytes(data)
    store = Store.open(path)
    with pytest.raises(JournalCorrupt, match="is damaged"):
        events(store)
    store.close()


WRITE_AND_WAIT = """
store = Store.open(path)
journal = store.begin("mine", workspace="/w", create=True)
for _ in range(50):
    journal.append(notice(journal, "x" * 100))
    await journal.commit()
say("written")
sys.stdin.readline()
"""
