"""Bytes are cut into lines in linear time and bounded memory, and lines are read as messages, or told to be none."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handwork.mcp.amount import MOST_VALUES
from handwork.mcp.lines import Lines, TooLong, messages, written


def _answer(id: int, result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()


def _cut(*chunks: bytes, longest: int = 1000) -> list[bytes]:
    lines = Lines(longest)
    return [bytes(line) for chunk in chunks for line in lines.feed(chunk)] + [bytes(line) for line in lines.end()]


@given(st.lists(st.binary(max_size=20).map(lambda data: b"{" + data.replace(b"\n", b"")), max_size=8), st.data())
def test_lines_are_the_same_however_the_bytes_come(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    chunks = [whole[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert _cut(*chunks) == lines


def test_empty_lines_marks_of_order_and_the_ends_of_other_systems_are_no_part_of_a_line() -> None:
    assert _cut(b'\n\r\n  \n\xef\xbb\xbf{"a": 1}\r\n', b"\xef\xbb", b"\xbf{}") == [b'{"a": 1}', b"{}"]


def test_a_line_may_be_as_long_as_any_and_no_longer() -> None:
    assert _cut(b"{" * 1000 + b"\n" + b"{" * 1000) == [b"{" * 1000] * 2
    with pytest.raises(TooLong):
        _cut(b"{" * 999, b"{{\n")
    with pytest.raises(TooLong):
        _cut(*[b"{" * 100] * 11)


def test_a_long_line_in_small_pieces_costs_no_more_than_its_length() -> None:
    def seconds(pieces: int) -> float:
        lines, began = Lines(), time.perf_counter()
        for _ in range(pieces):
            assert not list(lines.feed(b"x" * 100))
        return time.perf_counter() - began

    small, large = min(seconds(20_000) for _ in range(3)), min(seconds(80_000) for _ in range(3))
    assert large < small * 12


def test_a_message_is_read_and_what_is_none_is_not() -> None:
    [found] = messages(_answer(1, {"x": 1}))
    assert (found.id, found.result) == (1, {"x": 1})
    for line in (
        b"Welcome",
        b"{",
        b"[]",
        b"[1]",
        b"42",
        b'"text"',
        b"{}",
        b'{"jsonrpc": "1.0", "id": 1, "result": {}}',
        b"\0",
        b"\xff",
    ):
        assert messages(line) == []


def test_a_batch_is_its_messages() -> None:
    assert [each.id for each in messages(b"[" + _answer(1, {}) + b"," + _answer(2, {}) + b", 3]")] == [1, 2]


def test_what_has_no_utf8_is_read_with_a_mark_in_its_place() -> None:
    for inner in (b"a\\ud83db", b"a\xffb"):
        [found] = messages(b'{"jsonrpc": "2.0", "id": 1, "result": {"x": "%s"}}' % inner)
        assert found.result == {"x": "a\ufffdb"}
    [whole] = messages(b'{"jsonrpc": "2.0", "id": 1, "result": {"x": "\\ud83d\\ude00 \\ud800"}}')
    assert whole.result == {"x": "\U0001f600 \ufffd"}


@pytest.mark.parametrize("value", [b"[" * 3000 + b"]" * 3000, b"9" * 5000, b"[" * 100_000 + b"]" * 100_000])
def test_an_answer_that_cannot_be_read_becomes_the_error_of_its_request(value: bytes) -> None:
    for line in (
        b'{"jsonrpc": "2.0", "id": 7, "result": {"x": %s}}' % value,
        b'{"result": {"x": %s}, "jsonrpc": "2.0", "id": "seven"}' % value,
    ):
        [found] = messages(line)
        assert found.id in (7, "seven")
        assert "nested too deeply" in found.error.message
        assert messages(line, whole=False) == []
    two = b'{"jsonrpc": "2.0", "result": {"id": 3, "x": %s}, "id": 7}' % value
    assert messages(two) == []  # which of them it answers, nobody can say
    assert messages(b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": %s}}' % value) == []


def test_what_is_written_is_one_line_whatever_it_holds() -> None:
    from mcp_types import JSONRPCRequest

    for text in ("a\nb\r\u2028c", "half \ud83d of it", "\0"):
        line = written(JSONRPCRequest(jsonrpc="2.0", id=1, method="m", params={"text": text}))
        assert line.count(b"\n") == 1
        assert json.loads(line)["params"] == {"text": text}


def test_an_answer_of_more_values_than_any_may_have_is_an_error_for_its_request_and_is_not_read() -> None:
    bomb = b'{"jsonrpc": "2.0", "id": 7, "result": {"x": [%s0]}}' % (b"{}," * MOST_VALUES)
    tracemalloc.start()
    [found] = messages(bytearray(bomb))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (found.id, found.error.code) == (7, -32700)
    assert "500,000 values" in found.error.message
    assert most < 4 * len(bomb)


def test_a_long_text_full_of_commas_is_one_value() -> None:
    [found] = messages(_answer(1, {"x": 'a, \\"b\\", \\n' * MOST_VALUES}))
    assert len(found.result["x"]) > MOST_VALUES
