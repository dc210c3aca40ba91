"""Lines that are messages, and what those that are none are answered with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handwork.server.line import message_of, refusal_of

CALL = {"jsonrpc": "2.0", "method": "tools/list"}


def refused(line: bytes) -> tuple[Any, int]:
    with pytest.raises((ValueError, RecursionError)):
        message_of(line)
    answer = json.loads(refusal_of(line).model_dump_json())
    return answer["id"], answer["error"]["code"]


@pytest.mark.parametrize("line", [b"garbage", b"[" * 100_000, b"9" * 5000, b"\xff"])
def test_what_is_no_json_is_answered_as_such(line: bytes) -> None:
    assert refused(line) == (None, -32700)


@pytest.mark.parametrize("line", [b"[1]", b"{}", b"null", b'"\\ud800"', b'{"jsonrpc": "2.0", "id": 4}'])
def test_json_that_is_no_message_is_an_invalid_request(line: bytes) -> None:
    assert refused(line) == (None, -32600)


@pytest.mark.parametrize("id", [None, True, 1.0, 1.5, [1], {}])
def test_a_request_whose_id_is_none_is_answered_and_no_notification(id: Any) -> None:
    assert refused(json.dumps({**CALL, "id": id}).encode()) == (None, -32600)


@pytest.mark.parametrize("id", [0, -1, 10**30, "", "x"])
@pytest.mark.parametrize("wrong", [{"params": [1]}, {"method": 5}, {"jsonrpc": "1.0"}])
def test_a_request_that_is_wrong_elsewhere_is_answered_to_its_id(id: Any, wrong: dict[str, Any]) -> None:
    assert refused(json.dumps({**CALL, "id": id, **wrong}).encode()) == (id, -32600)


def test_a_wrong_answer_to_us_is_not_answered_to_the_id_of_our_question() -> None:
    assert refused(b'{"jsonrpc": "2.0", "id": 7, "result": 5}') == (None, -32600)


def test_half_a_surrogate_pair_becomes_a_mark() -> None:
    line = b'{"jsonrpc": "2.0", "id": "a\\ud800", "method": "m", "params": {"text": "\\udfff"}}'
    message = message_of(line)
    assert (message.id, message.params["text"]) == ("a\ufffd", "\ufffd")
    assert refused(line.replace(b"2.0", b"1.0")) == ("a\ufffd", -32600)


def test_what_a_notification_carries_may_be_called_id() -> None:
    message = message_of(b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"id": null}}')
    assert message.params == {"id": None}
