"""Values are counted as a parser would find them, however the bytes come."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handwork.mcp.amount import Amount, TooMany

_TEXTS = st.text(st.sampled_from('a,"\\\\/\\n\\r{['), max_size=6)
_VALUES = st.recursive(
    st.none() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
)


def _amount(value: Any) -> int:
    """Texts, and the commas between values."""
    if isinstance(value, dict):
        return sum(1 + _amount(each) for each in value.values()) + max(len(value) - 1, 0)
    if isinstance(value, list):
        return sum(map(_amount, value)) + max(len(value) - 1, 0)
    return int(isinstance(value, str))


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted(cut % (len(data) + 1) for cut in cuts)
    return [data[begin:end] for begin, end in zip([0, *places], [*places, len(data)], strict=True)]


def _counted(pieces: list[bytes], most: int, *, events: bool = False) -> bool:
    """Whether it is more than `most`."""
    amount = Amount(most, events=events)
    try:
        for piece in pieces:
            amount.feed(piece)
    except TooMany:
        return True
    return False


@given(_VALUES, st.lists(st.integers(0, 10_000), max_size=6), st.booleans())
def test_every_value_counts_once_and_none_in_a_text(value: Any, cuts: list[int], pretty: bool) -> None:
    pieces = _pieces(json.dumps(value, indent=1 if pretty else None).encode(), cuts)
    exact = _amount(value)
    assert not _counted(pieces, exact)
    assert exact == 0 or _counted(pieces, exact - 1)


@given(st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(0, 10_000), max_size=6))
def test_an_event_begins_anew_behind_an_empty_line_wherever_it_is_cut(end: bytes, cuts: list[int]) -> None:
    event = b'event: message%sdata: {"a": [1, 2, 3]}%s%s' % (end, end, end)
    pieces = _pieces(event * 5, cuts)
    assert not _counted(pieces, 5, events=True)
    assert _counted(pieces, 4, events=True)


@pytest.mark.parametrize(
    "before", [b'data: "\n\n', b'data: "\r\r', b'data: \\"\n\n', b"data: \\\n\n", b'data: "\\\n\n']
)
def test_a_text_that_is_never_closed_hides_nothing_behind_its_line(before: bytes) -> None:
    assert _counted([before, b"data: [" + b"0," * 100 + b"0]\n\n"], 99, events=True)


def test_lines_of_one_event_count_without_an_end() -> None:
    assert _counted([b"data: 0\n" * 100], 99, events=True)
    assert _counted([b"data: 0\r", b"\n"] * 100, 99, events=True)
