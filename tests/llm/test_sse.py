"""Server-sent events: cut anywhere, spelled anyhow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handwork.errors import BrokenStreamError
from handwork.llm import sse
from handwork.llm.sse import EventSplitter, NamedEvent

STREAM = (
    b"\xef\xbb\xbfdata: one\n\n: hello\n\ndata:two\r\n\r\nid: 7\nretry: 5\ndata: a\ndata: b\n\n: keep-alive\n\nevent: error\ndata: bad\n\n"
    b"data: last"
)
EVENTS = [b"one", b"two", b"a\nb", NamedEvent("error", b"bad"), b"last"]


def events_of(stream: bytes, cuts: list[int]) -> list[object]:
    splitter, events, at = EventSplitter(), [], 0
    for cut in [*sorted(cuts), len(stream)]:
        if cut > at:
            events += splitter.feed(stream[at:cut])
            at = cut
    return [*events, *splitter.finish()]


def test_bom_crlf_comments_multi_line_data_names_and_a_missing_last_blank_line_are_understood() -> None:
    assert events_of(STREAM, []) == EVENTS


def test_a_cut_at_any_byte_changes_nothing() -> None:
    for cut in range(len(STREAM)):
        assert events_of(STREAM, [cut]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_any_set_of_cuts_changes_nothing(cuts: list[int]) -> None:
    assert events_of(STREAM, cuts) == EVENTS


def test_lines_that_end_with_a_lone_carriage_return_are_events_as_they_arrive() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"data: one\r\rdata: t") == [b"one"]
    assert splitter.feed(b"wo\r") == []
    assert splitter.feed(b"\r") == [b"two"]
    assert splitter.finish() == []


@pytest.mark.parametrize("end", [b"\r", b"\r\n", b"\n"])
def test_any_line_end_may_be_cut_in_two(end: bytes) -> None:
    stream = STREAM.replace(b"\r\n", b"\n").replace(b"\n", end)
    for cut in range(len(stream)):
        assert events_of(stream, [cut]) == EVENTS
    assert events_of(stream, list(range(len(stream)))) == EVENTS


def test_a_name_without_data_is_not_the_next_events_name() -> None:
    assert events_of(b"event: error\n\ndata: x\n\n", []) == [b"x"]


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_BYTES", 1000)
    splitter = EventSplitter()
    splitter.feed(b"x" * 900)
    with pytest.raises(BrokenStreamError, match="larger than"):
        splitter.feed(b"x" * 900)
