"""Several processes on one store: one writer a session, free at once when it dies, nothing committed ever lost."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
from contextlib import ExitStack
from pathlib import Path

import pytest

from handwork.errors import JournalError, SessionBusy
from handwork.store.sqlite import Store
from tests.store.samples import begin, heard, notice, program, texts

HOLD = """
store = Store.open(path)
journal = store.begin("shared", workspace="/w", create=True)
journal.append(notice(journal))
await journal.commit()
say("holding", journal.since)
sys.stdin.readline()
"""


async def test_the_second_process_is_told_who_has_the_session_and_a_killed_holder_frees_it_at_once(
    store: Store,
) -> None:
    with program(HOLD, store.path) as child:
        heard(child)
        with pytest.raises(
            SessionBusy, match=rf"process {child.pid} on .+, since \d\d:\d\d \(less than a minute ago\)"
        ):
            begin(store, "shared")
        assert store.sessions()[0].id == "shared"
        other = begin(store, "another")
        other.append(notice(other))
        await other.commit()
        child.kill()
        child.wait()
        journal = begin(store, "shared")
    assert journal.seq == 1
    journal.append(notice(journal, "after"))
    await journal.commit()
    assert texts(store, "shared") == ["hello", "after"]


async def test_a_holder_that_has_written_nothing_yet_is_not_mistaken_for_an_earlier_one(store: Store) -> None:
    with program(HOLD, store.path) as child:
        heard(child)
    body = "store = Store.open(path)\nstore._gate.enlist = lambda journal: []\n" + (
        'store.begin("shared", workspace="/w", create=False)\nsay("holding")\nsys.stdin.readline()'
    )
    with program(body, store.path) as child:
        assert heard(child) == "holding"
        with pytest.raises(SessionBusy, match="another process"):
            begin(store, "shared")


async def test_a_forked_child_does_not_keep_the_lock_of_a_killed_parent(store: Store) -> None:
    body = HOLD.replace(
        'say("holding", journal.since)',
        """
        child = os.fork()
        if child == 0:
            say("forked", os.getpid())
            os.read(0, 1)
            os._exit(0)
        """.replace("\n        ", "\n"),
    )
    with program(body, store.path) as child:
        forked = int(heard(child).split()[1])
        with pytest.raises(SessionBusy):
            begin(store, "shared")
        child.kill()
        child.wait()
        os.kill(forked, 0)  # it lives still
        begin(store, "shared")
        os.kill(forked, signal.SIGKILL)


async def test_without_open_file_description_locks_processes_still_exclude_each_other(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handwork.store.locks._SET", None)
    monkeypatch.setattr("handwork.store.locks._GET", None)
    store = Store.open(path)
    with program("import handwork.store.locks as l\nl._SET = l._GET = None\n" + HOLD, path) as child:
        heard(child)
        with pytest.raises(SessionBusy):
            begin(store, "shared")
        assert store._locks.is_held("shared")
        assert not store._locks.is_held("free")
        child.kill()
        child.wait()
        begin(store, "shared")
    store.close()


async def test_a_commit_waits_for_another_process_without_blocking_the_loop(store: Store) -> None:
    journal = begin(store)
    journal.append(notice(journal))
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(journal.commit())
    turns = 0
    while turns < 50:  # the loop turns on while the commit waits
        await asyncio.sleep(0.001)
        turns += 1
    assert not waiting.done()
    other.execute("COMMIT")
    other.close()
    await waiting
    assert texts(store, journal.session_id) == ["hello"]


async def test_a_commit_that_waits_too_long_fails_and_keeps_its_rows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handwork.store.gate.PATIENCE", 0.05)
    journals = [begin(store) for _ in range(2)]
    for journal in journals:
        journal.append(notice(journal))
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    errors = await asyncio.gather(*(journal.commit() for journal in journals), return_exceptions=True)
    assert all(isinstance(error, JournalError) and "another process keeps it locked" in str(error) for error in errors)
    other.execute("COMMIT")
    other.close()
    await asyncio.gather(*(journal.commit() for journal in journals))
    assert [texts(store, journal.session_id) for journal in journals] == [["hello"], ["hello"]]


async def test_many_processes_may_make_the_store_at_the_same_time(path: Path) -> None:
    body = """
    store = Store.open(path)
    journal = store.begin(None, workspace="/w", create=True)
    for _ in range(20):
        journal.append(notice(journal))
        await journal.commit()
    say("done", journal.session_id)
    store.close()
    """
    with ExitStack() as stack:
        children = [stack.enter_context(program(body, path)) for _ in range(4)]
        said = [heard(child).split() for child in children]
    assert [words[0] for words in said] == ["done"] * 4
    store = Store.open(path)
    assert all(len(texts(store, words[1])) == 20 for words in said)
    store.close()


def test_opening_waits_for_a_process_that_makes_the_store_at_this_moment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("time.sleep", lambda seconds: other.execute("COMMIT"))  # it is done while we wait
    Store.open(path).close()
    assert not other.in_transaction
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr("handwork.store.connection._OPEN_PATIENCE", 0.01)
    with pytest.raises(JournalError, match="another process keeps it locked"):
        Store.open(path)
    other.close()


WRITE = """
store = Store.open(path)
import handwork.store.wal as wal
wal._DUE = 1 << 16  # checkpoints are under way all the time
async def agent(name):
    journal = store.begin(name, workspace="/w", create=True)
    while True:
        for _ in range(4):
            journal.append(notice(journal, "x" * 500))
        await journal.commit()
        say(name, journal.seq)
await asyncio.gather(agent("a"), agent("b"))
"""


async def crash_and_check(path: Path, rounds: int, seed: int) -> None:
    """Kill a writing process at a random gate, over and over on one store; every gate it told of must be there."""
    chance = random.Random(seed)
    for _ in range(rounds):
        told = {"a": 0, "b": 0}
        with program(WRITE, path) as child:
            for _ in range(chance.randrange(2, 200)):
                name, seq = heard(child).split()
                told[name] = int(seq)
            child.kill()
            assert child.stdout is not None
            for line in child.stdout.read().splitlines(keepends=True):
                if line.endswith("\n"):
                    name, seq = line.split()
                    told[name] = int(seq)
            child.wait()
        store = Store.open(path)
        for name, seq in told.items():
            journal = store.begin(name, workspace="/w", create=False)
            numbers = [event.seq for event in journal.replay()]
            assert numbers == list(range(1, len(numbers) + 1))
            assert len(numbers) >= seq
            assert len(numbers) % 4 == 0  # a gate is there as a whole or not at all
            journal.close()
        assert store._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        store.close()


async def test_a_process_killed_while_it_writes_loses_no_gate_it_passed(path: Path) -> None:
    await crash_and_check(path, 2, seed=1)


@pytest.mark.slow
async def test_many_processes_killed_at_random_points_lose_no_gate_they_passed(path: Path) -> None:
    await crash_and_check(path, 25, seed=2)
