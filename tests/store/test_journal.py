"""The journal: events in order, on disk at the gates, one transaction for all who reach a gate together."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from handwork.errors import JournalCorrupt, JournalError, StoreUnusable
from handwork.events import MessageAdded, Notice, ToolCallFinished, UnknownEvent, read_event
from handwork.schema import Function, Image, Message, Role, ToolCall
from handwork.store.gate import Gate
from handwork.store.sqlite import Store
from tests.store.samples import begin, notice, result, started, texts


def transactions(store: Store) -> list[str]:
    """Every COMMIT that SQLite runs from now on."""
    seen: list[str] = []
    store._connection.set_trace_callback(lambda sql: seen.append(sql) if sql == "COMMIT" else None)
    return seen


async def test_what_was_committed_is_read_back_in_order(store: Store) -> None:
    journal = begin(store)
    for text in ("one", "two", "three"):
        journal.append(notice(journal, text))
    await journal.commit()
    assert [event.seq for event in journal.replay()] == [1, 2, 3]
    assert texts(store, journal.session_id) == ["one", "two", "three"]
    assert [seq for seq, _ in store.events(journal.session_id, after=1)] == [2, 3]


async def test_nothing_is_on_disk_before_the_gate_and_no_transaction_is_open_between_gates(store: Store) -> None:
    journal = begin(store)
    journal.append(notice(journal))
    with sqlite3.connect(store.path) as other:
        assert other.execute("SELECT count(*) FROM events").fetchone() == (0,)
        assert other.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
        await journal.commit()
        assert not store._connection.in_transaction
        assert other.execute("SELECT count(*) FROM events").fetchone() == (1,)
        other.execute("DELETE FROM blobs")  # whoever else wants to write may
    other.close()


async def test_a_gate_with_nothing_new_writes_nothing(store: Store) -> None:
    journal = begin(store)
    seen = transactions(store)
    await journal.commit()
    assert not seen
    assert store.sessions() == []


async def test_sessions_at_a_gate_in_the_same_turn_share_one_transaction(store: Store) -> None:
    journals = [begin(store) for _ in range(200)]
    seen = transactions(store)

    async def gate(journal_number: int) -> None:
        journal = journals[journal_number]
        for text in ("a", "b", "c", "d"):
            journal.append(notice(journal, text))
        await journal.commit()

    await asyncio.gather(*map(gate, range(200)))
    assert len(seen) == 1
    await asyncio.gather(*map(gate, range(200)))
    assert len(seen) == 2
    for journal in journals:
        assert [event.seq for event in journal.replay()] == list(range(1, 9))
    assert len(store.sessions(limit=1000)) == 200


async def test_sessions_of_200_agents_that_go_at_their_own_pace_lose_nothing(store: Store) -> None:
    async def agent(number: int) -> str:
        journal = begin(store, f"agent-{number}")
        for gate in range(10):
            for _ in range(number % 4):
                await asyncio.sleep(0)
            journal.append(notice(journal, str(gate)))
            await journal.commit()
        journal.close()
        return journal.session_id

    for name in await asyncio.gather(*map(agent, range(200))):
        assert texts(store, name) == [str(gate) for gate in range(10)]


async def test_one_session_alone_gives_the_loop_a_turn_at_every_gate(store: Store) -> None:
    journal = begin(store)
    turns: list[int] = []

    async def beside() -> None:
        while True:
            turns.append(journal.seq)
            await asyncio.sleep(0)

    other = asyncio.ensure_future(beside())
    for _ in range(5):
        journal.append(notice(journal))
        await journal.commit()
    other.cancel()
    assert set(turns) >= {1, 2, 3, 4, 5}


async def test_an_error_reaches_every_session_of_the_gate_and_the_rows_stay(store: Store) -> None:
    journals = [begin(store) for _ in range(3)]
    for journal in journals:
        journal.append(notice(journal))
    store._connection.execute("PRAGMA query_only = 1")
    errors = await asyncio.gather(*(journal.commit() for journal in journals), return_exceptions=True)
    assert [type(error) for error in errors] == [StoreUnusable] * 3
    assert len({id(error) for error in errors}) == 3
    assert "read-only" in str(errors[0])
    store._connection.execute("PRAGMA query_only = 0")
    journals[0].append(notice(journals[0], "later"))
    await asyncio.gather(*(journal.commit() for journal in journals))
    assert texts(store, journals[0].session_id) == ["hello", "later"]
    assert texts(store, journals[2].session_id) == ["hello"]


async def test_a_session_alone_gets_the_error_and_goes_on_too(store: Store) -> None:
    journal = begin(store)
    journal.append(notice(journal))
    store._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(JournalError, match="read-only"):
        await journal.commit()
    assert not store._connection.in_transaction
    store._connection.execute("PRAGMA query_only = 0")
    await journal.commit()
    assert texts(store, journal.session_id) == ["hello"]


async def test_a_cancelled_gate_still_writes_and_disturbs_nobody(store: Store) -> None:
    first, second = begin(store), begin(store)
    for journal in (first, second):
        journal.append(notice(journal))
    tasks = [asyncio.ensure_future(journal.commit()) for journal in (first, second)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await tasks[1]
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    assert texts(store, first.session_id) == texts(store, second.session_id) == ["hello"]


async def test_whoever_waits_at_a_gate_gets_an_error_even_from_the_unforeseen() -> None:
    gate: Gate[str] = Gate(lambda writers: print(1 / 0))
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["exception"]))
    results = await asyncio.gather(gate.pass_through("a"), gate.pass_through("b"), return_exceptions=True)
    assert all(isinstance(error, JournalError) for error in results)
    assert [type(complaint) for complaint in complaints] == [ZeroDivisionError]


async def test_only_the_next_number_can_be_appended(store: Store) -> None:
    journal = begin(store)
    journal.append(notice(journal))
    for seq in (1, 3, None):
        with pytest.raises(JournalError, match="event 2 is due"):
            journal.append(Notice(seq=seq, level="info", text="x"))
    assert journal.seq == 1


async def test_a_second_writer_of_the_same_rows_is_refused_by_the_table(store: Store) -> None:
    journal = begin(store)
    journal.append(notice(journal))
    await journal.commit()
    for _ in range(3):
        journal.append(notice(journal))
    store._connection.execute("INSERT INTO events VALUES (1, 3, x'7b7d')")
    with pytest.raises(JournalError, match="wrote these rows already"):
        await journal.commit()
    assert not store._connection.in_transaction
    assert store._connection.execute("SELECT seq FROM events ORDER BY seq").fetchall() == [
        (1,),
        (3,),
    ]  # nothing by halves
    journal.close()


async def test_a_gap_is_corruption_and_is_named(store: Store) -> None:
    journal = begin(store)
    for _ in range(3):
        journal.append(notice(journal))
    await journal.commit()
    store._connection.execute("DELETE FROM events WHERE seq = 2")
    with pytest.raises(JournalCorrupt, match=f"event 2 of session {journal.session_id} is missing"):
        list(journal.replay())


async def test_a_session_goes_on_where_its_last_writer_stopped(path: Path) -> None:
    store = Store.open(path)
    journal = begin(store, "mine")
    journal.append(notice(journal, "first"))
    await journal.commit()
    journal.close()
    store.close()
    store = Store.open(path)
    again = begin(store, "mine")
    assert again.seq == 1
    again.append(notice(again, "second"))
    await again.commit()
    assert texts(store, "mine") == ["first", "second"]
    again.close()
    store.close()


async def test_more_rows_than_a_page_are_read_without_holding_a_transaction(store: Store) -> None:
    journal = begin(store)
    for number in range(250):
        journal.append(notice(journal, str(number)))
    await journal.commit()
    rows = store.events(journal.session_id)
    next(rows)
    journal.append(notice(journal, "while reading"))
    await journal.commit()
    assert len(list(rows)) == 250


async def test_unknown_kinds_load_and_raw_rows_come_back_unchanged(store: Store) -> None:
    journal = begin(store)
    journal.append(started(journal))
    newer = b'{"v":9,"type":"hologram_shown","seq":2,  "new":[1,2]}'
    journal.append(UnknownEvent(type="hologram_shown", seq=2, raw=newer))
    journal.append(notice(journal))
    await journal.commit()
    assert [type(event).__name__ for event in journal.replay()] == ["RunStarted", "UnknownEvent", "Notice"]
    assert [raw for _, raw in store.events(journal.session_id)][1] == newer


@pytest.mark.parametrize("raw", [b"garbage", b"[1]", b'"x"', b'{"type":"notice","seq":"x"}', b"[" * 5000, b"\xff"])
async def test_a_row_that_cannot_be_read_does_not_keep_the_rest_from_loading(store: Store, raw: bytes) -> None:
    journal = begin(store)
    journal.append(notice(journal))
    await journal.commit()
    store._connection.execute("INSERT INTO events VALUES (1, 2, ?)", (raw,))
    events = list(journal.replay())
    assert isinstance(events[1], UnknownEvent)
    assert events[1].raw == raw


@pytest.mark.parametrize(
    "event_text",
    ["lone \ud83d surrogate", "low first \udc00\ud800", "nul \0 inside", "\ufeff\u202e\x1b[31m", "😀 whole", ""],
)
async def test_no_text_breaks_a_write(store: Store, event_text: str) -> None:
    journal = begin(store)
    journal.append(notice(journal, event_text))
    journal.append(result(journal, event_text, {event_text: [event_text]}))
    await journal.commit()
    events = list(journal.replay())
    assert [type(event) for event in events] == [Notice, ToolCallFinished]
    if event_text.isascii() or event_text == "😀 whole":
        assert texts(store, journal.session_id) == [event_text]


def _nested(depth: int, *, lists: bool = False) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value] if lists else {"a": value}
    return value


@pytest.mark.parametrize(
    "value",
    [
        *(_nested(depth) for depth in (90, 150, 199, 205, 254, 300, 3000)),
        _nested(3000, lists=True),
        10**5000,
        -(2**63) - 1,
        float("nan"),
        float("inf"),
        b"\xff\xfe",
        object(),
        {1: 2},
        {"set": {1, 2}},
        Path("/x"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_whatever_a_tool_puts_into_its_details_can_be_written_and_read(store: Store, value: object) -> None:
    journal = begin(store)
    journal.append(result(journal, "kept", {"value": value, "beside": "kept"}))
    await journal.commit()
    (event,) = journal.replay()
    assert isinstance(event, ToolCallFinished)
    assert event.observation == "kept"
    assert event.details is not None
    assert event.details["beside"] == "kept"


async def test_an_event_too_large_for_the_store_is_refused_before_it_spoils_later_commits(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handwork.store.encode.MAX_ROW", 1000)
    monkeypatch.setattr("handwork.store.sqlite.MAX_ROW", 1000)
    journal = begin(store)
    with pytest.raises(JournalError, match="too large"):
        journal.append(notice(journal, "x" * 2000))
    with pytest.raises(JournalError, match="too large"):
        store.put_blob("h", b"x" * 2000)
    journal.append(notice(journal, "small"))
    await journal.commit()
    assert texts(store, journal.session_id) == ["small"]


async def test_pictures_are_read_back_before_and_after_the_commit_that_carries_them(path: Path) -> None:
    store = Store.open(path)
    journal = begin(store)
    store.put_blob("h1", b"\0\xff" * 10_000)
    assert store.get_blob("h1") == b"\0\xff" * 10_000
    assert store.get_blob("h2") is None
    journal.append(notice(journal))
    seen = transactions(store)
    await journal.commit()
    assert len(seen) == 1
    store.put_blob("h1", b"\0\xff" * 10_000)  # the same picture again
    await journal.commit()
    journal.close()
    store.close()
    store = Store.open(path)
    assert store.get_blob("h1") == b"\0\xff" * 10_000
    store.close()


async def test_closing_a_journal_commits_nothing_and_its_waiters_are_told(store: Store) -> None:
    first, second = begin(store), begin(store)
    first.append(notice(first))
    waiting = asyncio.ensure_future(first.commit())
    await asyncio.sleep(0)
    first.close()
    first.close()
    with pytest.raises(JournalError, match="closed before"):
        await waiting
    assert store.sessions() == []
    with pytest.raises(JournalError, match="is closed"):
        first.append(notice(first))
    second.close()


async def test_the_bytes_of_an_event_are_what_the_events_module_writes(store: Store) -> None:
    journal = begin(store)
    event = started(journal)
    journal.append(event)
    await journal.commit()
    ((_, raw),) = store.events(journal.session_id)
    assert read_event(raw) == event


async def test_a_message_with_broken_text_is_read_back_as_a_message_without_its_pictures_bytes(store: Store) -> None:
    call = ToolCall(id="c1", function=Function(name="bash", arguments='{"a": "\ud800"}'))
    picture = Image(hash="h", media_type="image/png", data="QUJDREVG")
    message = Message(
        role=Role.ASSISTANT, content="hi", tool_calls=(call,), images=(picture,), opaque={"deep": _nested(3000)}
    )
    journal = begin(store)
    journal.append(MessageAdded(seq=1, message=message))
    await journal.commit()
    ((_, raw),) = store.events(journal.session_id)
    assert b"QUJDREVG" not in raw
    (event,) = journal.replay()
    assert isinstance(event, MessageAdded)
    assert (event.message.content, event.message.tool_calls[0].id, event.message.images[0].hash) == ("hi", "c1", "h")
