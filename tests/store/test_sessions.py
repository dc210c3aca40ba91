"""Sessions: ids, one writer each, and what a list of them shows."""

from __future__ import annotations

import asyncio
import math
import os
import re
import stat
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from handwork.errors import ConfigError, JournalError, SessionBusy, SessionNotFound
from handwork.schema import Status
from handwork.store.facts import since
from handwork.store.sqlite import Store
from tests.store.samples import begin, finished, notice, started, step, usage


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_new_session_gets_a_short_id_that_begins_with_the_day(store: Store) -> None:
    ids = [begin(store).session_id for _ in range(100)]
    assert len(set(ids)) == 100
    assert all(re.fullmatch(r"20\d{6}-[2-9a-z]{6}", name) for name in ids)


async def test_beginning_writes_nothing(store: Store) -> None:
    begin(store)
    begin(store, "named")
    assert store.sessions() == []
    assert list(store.events("named")) == []


async def test_a_missing_session_is_not_made_unless_asked_and_the_nearest_are_named(store: Store) -> None:
    for name in ("20261130-k3f9x2", "20261129-aaaaaa"):
        journal = begin(store, name)
        journal.append(notice(journal))
        await journal.commit()
    for wrong in ("20261130-k3f9x3", "k3f9", "20261130-k3f9x2 "):
        with pytest.raises(SessionNotFound, match="20261130-k3f9x2"):
            store.begin(wrong, workspace="/w", create=False)
    with pytest.raises(SessionNotFound, match="none like it"):
        store.begin("unlike", workspace="/w", create=False)
    with pytest.raises(SessionNotFound):
        list(store.events("unlike"))


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "-x", "a b", "a\0", "x" * 101, "ä", "a\n"])
async def test_an_id_that_cannot_name_a_folder_is_refused(store: Store, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be a session's id"):
        begin(store, name)
    with pytest.raises(SessionNotFound):
        store.begin(name, workspace="/w", create=False)


async def test_the_second_writer_in_one_process_is_told_who_holds_the_session(store: Store) -> None:
    journal = begin(store, "mine")
    with pytest.raises(SessionBusy, match=rf"this process \(pid {os.getpid()} on .+\), since \d\d:\d\d \(") as busy:
        begin(store, "mine")
    assert busy.value.hint.startswith("end it there first")
    begin(store, "other")
    journal.close()
    begin(store, "mine")


@pytest.mark.parametrize(
    ("seconds", "ago"),
    [
        (59, "less than a minute"),
        (60, "1 minute"),
        (3_599, "59 minutes"),
        (7_300, "2 hours"),
        (3 * 86_400 + 5, "3 days"),
    ],
)
def test_since_when_is_said_in_the_words_of_people(seconds: int, ago: str) -> None:
    at = datetime(2026, 11, 30, 12).astimezone()
    moment = at - timedelta(seconds=seconds)
    told = since(moment.isoformat(), at)
    assert told.startswith(f"since {moment.astimezone():%H:%M} (" if seconds < 86_400 else "since 2026-11-27 ")
    assert told.endswith(f" ({ago} ago)")
    assert since((at + timedelta(hours=1)).isoformat(), at).endswith(":00")  # the other's clock goes before
    assert since("nonsense") == "since a time that is not known"


async def test_two_stores_of_one_process_exclude_each_other(path: Path, store: Store) -> None:
    journal = begin(store, "mine")
    journal.append(notice(journal))
    await journal.commit()

    def elsewhere() -> str:
        async def other_loop() -> str:
            other = Store.open(path)
            try:
                assert other is not store
                with pytest.raises(SessionBusy, match=f"process {os.getpid()} on"):
                    begin(other, "mine")
                begin(other, "free").close()
            finally:
                other.close()  # must not free what the first store holds
            return "refused"

        return asyncio.run(other_loop())

    assert await asyncio.to_thread(elsewhere) == "refused"
    assert await asyncio.to_thread(elsewhere) == "refused"


async def test_a_resumed_session_is_known_to_be_ours_before_its_first_gate(store: Store, path: Path) -> None:
    journal = begin(store, "mine")
    journal.append(notice(journal))
    await journal.commit()
    journal.close()
    store._connection.execute("UPDATE sessions SET pid = 0, host = 'old', since = 'then'")
    resumed = begin(store, "mine")
    await asyncio.sleep(0)
    row = store._connection.execute("SELECT pid, since FROM sessions").fetchone()
    assert row == (os.getpid(), resumed.since)


async def test_two_hundred_sessions_cost_one_descriptor_each_for_nothing(store: Store) -> None:
    before = descriptors()
    for _ in range(200):
        journal = begin(store)
        journal.append(notice(journal))
        await journal.commit()
    assert descriptors() - before <= 1


async def test_the_list_tells_title_agent_model_status_steps_and_cost(store: Store) -> None:
    journal = begin(store, workspace="/old")
    journal.append(started(journal, "\n  Fix the \x1b[31mbug\u202e\tnow  \nplease", "/w"))
    journal.append(usage(journal, 0.25))
    journal.append(step(journal))
    journal.append(step(journal, parent="c1"))
    journal.append(started(journal, "a part of it", "/part", parent="c1"))
    journal.append(finished(journal, Status.FAILED, parent="c1"))
    journal.append(usage(journal, 0.5))
    journal.append(step(journal, 2))
    await journal.commit()
    (info,) = store.sessions()
    assert (info.title, info.agent, info.model, info.status) == (
        "Fix the [31mbug now",
        "manus",
        "scripted:m",
        "running",
    )
    assert (info.steps, info.cost, info.workspace, info.id) == (2, 0.75, "/w", journal.session_id)
    journal.append(finished(journal, Status.MAX_STEPS))
    journal.append(started(journal, "second"))
    journal.append(finished(journal, Status.FINISHED))
    await journal.commit()
    (info,) = store.sessions()
    assert (info.title, info.status) == ("Fix the [31mbug now", "finished")
    assert info.created <= info.updated


async def test_an_unknown_price_is_not_shown_as_nothing_whatever_is_known_later(store: Store) -> None:
    for prices in ((0.25, None, 0.25), (0.25,)):
        journal = begin(store, "mine")
        for price in prices:
            journal.append(usage(journal, price))
        journal.append(step(journal))
        await journal.commit()
        journal.close()
        assert store.sessions()[0].cost == math.inf


async def test_what_no_request_has_answered_yet_has_no_cost_and_a_free_model_costs_nothing(store: Store) -> None:
    journal = begin(store)
    journal.append(started(journal, "request"))
    await journal.commit()
    assert store.sessions()[0].cost is None
    journal.append(usage(journal, 0.0))
    journal.append(step(journal))
    await journal.commit()
    assert store.sessions()[0].cost == 0


async def test_facts_go_on_over_a_reopening(store: Store) -> None:
    for _ in range(2):
        journal = begin(store, "mine")
        journal.append(started(journal, f"request {journal.seq}"))
        journal.append(usage(journal, 1.0))
        journal.append(step(journal))
        journal.append(finished(journal))
        await journal.commit()
        journal.close()
    (info,) = store.sessions()
    assert (info.steps, info.cost, info.title) == (2, 2.0, "request 0")


async def test_a_long_title_is_cut(store: Store) -> None:
    journal = begin(store)
    journal.append(started(journal, "word " * 100))
    await journal.commit()
    title = store.sessions()[0].title
    assert len(title) <= 80
    assert title.endswith("word…")


async def test_a_run_whose_process_is_gone_shows_as_interrupted(store: Store) -> None:
    journal = begin(store)
    journal.append(started(journal))
    await journal.commit()
    assert store.sessions()[0].status == "running"
    journal.close()
    assert store.sessions()[0].status == "interrupted"


async def test_the_newest_is_the_one_that_was_active_last_whatever_the_clock_says(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = iter(range(23, 0, -1))  # a clock that runs backwards
    monkeypatch.setattr("handwork.store.rows.now", lambda: f"2026-11-30T{next(hours):02}:00:00Z")
    for name, workspace in (("a", "/w"), ("b", "/w"), ("c", "/elsewhere")):
        journal = begin(store, name, workspace=workspace)
        journal.append(started(journal, workspace=workspace))
        await journal.commit()
        journal.close()
    assert [info.id for info in store.sessions()] == ["c", "b", "a"]
    assert store.latest("/w") == "b"
    assert store.latest("/none") is None
    again = begin(store, "a")
    again.append(started(again))
    await again.commit()
    assert [info.id for info in store.sessions()] == ["a", "c", "b"]
    assert [info.id for info in store.sessions(workspace="/w")] == ["a", "b"]
    assert [info.id for info in store.sessions(limit=1)] == ["a"]
    assert store.latest("/w") == "a"


async def test_one_connection_a_process_and_loop_closed_by_its_last_user(path: Path) -> None:
    first = Store.open(path)
    second = Store.open(path.parent / ".." / path.parent.name / path.name)
    assert first is second
    first.close()
    journal = begin(second)
    journal.append(notice(journal))
    second.close()  # writes what is buffered
    second.close()
    with pytest.raises(JournalError, match="is closed"):
        begin(second)
    third = Store.open(path)
    assert third is not first
    assert len(list(third.events(journal.session_id))) == 1
    third.close()


def test_a_store_can_be_read_without_a_loop(path: Path) -> None:
    async def write() -> str:
        store = Store.open(path)
        journal = begin(store)
        journal.append(started(journal))
        await journal.commit()
        store.close()
        return journal.session_id

    name = asyncio.run(write())
    first, second = Store.open(path), Store.open(path)
    assert first is not second
    assert [info.id for info in first.sessions()] == [name]
    store_begin = first.begin(name, workspace="/w", create=False)
    assert len(list(store_begin.replay())) == 1
    first.close()
    second.close()


async def test_full_asked_by_anyone_is_full_for_all(path: Path) -> None:
    first = Store.open(path)
    assert first._connection.execute("PRAGMA synchronous").fetchone() == (1,)
    second = Store.open(path, synchronous="full")
    assert first._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    first.close()
    second.close()
    with pytest.raises(ConfigError, match="synchronous"):
        Store.open(path, synchronous="off")


async def test_folder_and_files_are_for_their_owner_alone(store: Store, path: Path) -> None:
    journal = begin(store)
    journal.append(notice(journal))
    await journal.commit()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert set(modes) == {"store.db", "store.db-wal", "store.db-shm", "store.db-lock"}
    assert set(modes.values()) == {0o600}


async def test_closing_leaves_no_log_and_no_descriptor(path: Path) -> None:
    before = descriptors()
    store = Store.open(path)
    begin(store)
    store.close()
    assert {file.name for file in path.parent.iterdir()} == {"store.db", "store.db-lock"}
    assert descriptors() == before
