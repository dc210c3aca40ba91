"""Answers of a shape that nobody thought of: a typed error, never one of ours; and never half an answer for a whole one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handwork.errors import (
    AuthenticationError,
    BadRequestError,
    BrokenStreamError,
    ContentFilterError,
    ModelError,
    ModelNotFoundError,
    PermissionDeniedError,
    QuotaError,
    RateLimitError,
    ServerError,
    TransientModelError,
)
from handwork.llm.chat.stream import ChatStream
from handwork.llm.failures import Source, error_of, retry_after
from handwork.schema import Reply, StreamItem
from tests.support.fault_server import DONE, delta, event, usage_event

KEY = "my-secret-key-123456"
SOURCE = Source("openai", "gpt-x", KEY, ("Bearer my-header-token-98765", "yes"))


def read(*pieces: bytes) -> tuple[list[StreamItem], Reply]:
    decoder = ChatStream(SOURCE)
    items = [item for piece in pieces for item in decoder.feed(piece)]
    return items, decoder.finish()


def choice(**fields: Any) -> bytes:
    return json.dumps({"choices": [{"index": 0, "finish_reason": "stop", **fields}]}).encode()


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


ODD = {
    "tool_calls": choice(delta={"tool_calls": 5}),
    "tool_calls true": choice(delta={"tool_calls": True}),
    "name number": choice(delta={"tool_calls": [{"function": {"name": 5, "arguments": "{}"}}]}),
    "name dict": choice(delta={"tool_calls": [{"function": {"name": {"a": 1}, "arguments": "{}"}}]}),
    "function_call": choice(delta={"function_call": {"name": 7}}),
    "thinking": choice(delta={"content": [{"thinking": 5}]}),
    "deep arguments": choice(delta={"tool_calls": [{"function": {"name": "f", "arguments": nested(300)}}]}),
    "deep details": choice(delta={"reasoning_details": [{"type": "x", "a": nested(300)}]}),
    "deep extra": choice(delta={"content": "x", "extra_content": nested(300)}),
    "infinite extra": choice(delta={"content": "x", "extra_content": 1}).replace(b": 1}", b": 1e999}"),
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
def test_an_answer_of_an_odd_shape_is_a_broken_stream_in_events_and_in_plain_json(body: bytes) -> None:
    for pieces in ((body,), (b"data: " + body + b"\n\n", DONE)):
        with pytest.raises(BrokenStreamError) as caught:
            read(*pieces)
        assert caught.value.__context__ is None
        assert "openai:gpt-x" in str(caught.value)


@pytest.mark.parametrize("cost", ["9" * 400, "1e999", '"x"', "true", "[1]", "-1"])
def test_a_senseless_cost_does_not_spoil_an_answer(cost: str) -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"cost":%s}}\n\n' % cost.encode()
    assert read(delta(content="x"), delta("stop"), usage, DONE)[1].cost_usd is None


_WORDS = st.sampled_from(
    [
        "choices",
        "delta",
        "message",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "index",
        "id",
        "usage",
        "cost",
        "finish_reason",
        "error",
        "code",
        "type",
        "reasoning_details",
        "text",
        "thinking",
        "refusal",
        "extra_content",
        "detail",
        "function_call",
        "prompt_tokens",
        "prompt_tokens_details",
        "status",
        "metadata",
        "raw",
        "model",
        "object",
        "stop",
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**400) | st.floats() | st.text(max_size=4) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)
_DELTAS = st.dictionaries(_WORDS, _VALUES, max_size=5)
_CHUNKS = _VALUES | st.builds(
    lambda delta, more: {"choices": [{"delta": delta, "finish_reason": "stop"} | more]},
    _DELTAS,
    st.dictionaries(_WORDS, _VALUES, max_size=2),
)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(_CHUNKS, max_size=4),
    st.booleans(),
    st.sampled_from([b"", b"\xef", b"\xef\xbb\xbf", b"\r", b"event: error\n"]),
)
def test_whatever_a_server_sends_only_a_model_error_leaves_the_decoder(
    chunks: list[Any], plain: bool, start: bytes
) -> None:
    bodies = [json.dumps(chunk).encode() for chunk in chunks]
    pieces = bodies[:1] if plain else [b"data: " + body + b"\n\n" for body in bodies]
    with suppress(ModelError):
        read(start, *pieces, b"" if plain else DONE)


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=80), st.integers(0, 80))
def test_whatever_bytes_a_server_sends_only_a_model_error_leaves_the_decoder(raw: bytes, cut: int) -> None:
    for prefix in (b"", b"data: ", b"{"):
        with suppress(ModelError):
            read((prefix + raw)[:cut], (prefix + raw)[cut:])


@settings(deadline=None, max_examples=200)
@given(_VALUES, st.none() | st.integers(100, 599))
def test_whatever_an_error_holds_it_is_typed(value: Any, status: int | None) -> None:
    assert isinstance(error_of(SOURCE, status, json.dumps(value).encode()), ModelError)
    assert isinstance(error_of(SOURCE, status, value), ModelError)


@pytest.mark.parametrize(("status", "kind"), [(429, RateLimitError), (500, ServerError), (None, ServerError)])
def test_an_error_of_a_shape_without_sense_is_typed_by_its_status(status: int | None, kind: type[ModelError]) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    error = error_of(SOURCE, status, {"error": {"message": deep}})
    assert type(error) is kind
    assert error.status == status
    while deep:  # else its end would overflow the stack
        deep = deep[0]


@pytest.mark.parametrize("unit", ["h", "m", "s"])
def test_a_wait_of_thousands_of_digits_is_a_rate_limit_too_long_to_wait_for(unit: str) -> None:
    error = error_of(SOURCE, 429, json.dumps({"error": {"message": f"try again in {'9' * 5000}{unit}"}}).encode())
    assert type(error) is RateLimitError
    assert error.retry_after == float("inf")


def test_a_senseless_wait_in_milliseconds_does_not_hide_one_in_seconds() -> None:
    assert retry_after({"retry-after-ms": "nan", "retry-after": "7"}) == 7.0
    assert retry_after({"retry-after-ms": "nan", "retry-after": "nan"}) is None


# ---- what is no good end


@pytest.mark.parametrize(
    "said",
    [
        "abort",
        "timeout",
        "cancelled",
        "OTHER",
        "LANGUAGE",
        "FINISH_REASON_UNSPECIFIED",
        "odd",
        "network_error",
        "pause_turn",
    ],
)
def test_an_end_that_is_none_we_know_is_a_broken_stream_and_never_a_success(said: str) -> None:
    with pytest.raises(BrokenStreamError, match="ended with"):
        read(delta(content="par"), delta(said), DONE)


@pytest.mark.parametrize(
    "said",
    [
        "content_filter",
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "refusal",
        "sensitive",
        "guardrail_intervened",
        "ERROR_TOXIC",
        "FinishReason.SAFETY",
    ],
)
def test_the_names_of_filters_are_content_filter_errors(said: str) -> None:
    with pytest.raises(ContentFilterError):
        read(delta(content="par"), delta(said), DONE)


def test_a_refusal_is_an_error_also_after_some_text_and_in_plain_json() -> None:
    with pytest.raises(ContentFilterError, match="I cannot"):
        read(delta(content="Sure, "), delta(refusal="I cannot"), delta("stop"), DONE)
    with pytest.raises(ContentFilterError, match="I cannot"):
        read(choice(message={"content": "Sure", "refusal": "I cannot"}))


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        ("authentication_error", AuthenticationError),
        ("permission_error", PermissionDeniedError),
        ("not_found_error", ModelNotFoundError),
        ("invalid_request_error", BadRequestError),
        ("billing_error", QuotaError),
        ("UNAUTHENTICATED", AuthenticationError),
        ("PERMISSION_DENIED", PermissionDeniedError),
    ],
)
def test_an_error_in_the_stream_is_typed_by_its_type_and_asked_again_only_if_that_helps(
    type: str, kind: type[ModelError]
) -> None:
    named = b"event: error\n" + event({"type": "error", "error": {"type": type, "message": "no"}})
    for piece in (event({"error": {"type": type, "message": "no"}}), named):
        with pytest.raises(kind) as caught:
            read(delta(content="par"), piece)
        assert not isinstance(caught.value, TransientModelError)


# ---- secrets


@pytest.mark.parametrize("secret", [KEY, "my-header-token-98765"])
@pytest.mark.parametrize(
    "answer",
    [
        b"data: {oops %s\n\n",
        b'data: [1, 2, "%s"]\n\n',
        b'data: {"error": {"message": "bad %s"}}\n\n',
        b"event: error\ndata: bad %s\n\n",
        b'{"choices": [{"message": {"content": "x"}, "finish_reason": "odd %s"}]}',
        b'{"choices": [{"message": {"refusal": "%s"}, "finish_reason": "stop"}]}',
        b"{oops %s",
        b"data: {oops " + b"x" * 180 + b" %s\n\n",
    ],
)
def test_no_answer_that_echoes_a_secret_brings_it_into_an_error_or_behind_one(answer: bytes, secret: str) -> None:
    with pytest.raises(ModelError) as caught:
        read(answer.replace(b"%s", secret.encode()))
    shown = str(caught.value) + repr(caught.value.__context__) + repr(caught.value.__cause__)
    assert secret[:12] not in shown
    assert caught.value.__context__ is None


def test_a_secret_at_the_edge_of_what_is_shown_is_masked_before_the_cut() -> None:
    for length in range(560, 620):
        assert KEY[:6] not in str(error_of(SOURCE, 500, b"x" * length + b" " + KEY.encode()))


# ---- events


def test_an_error_event_without_data_leaves_its_name_to_nobody() -> None:
    assert read(b"event: error\n\n" + delta(content="x"), delta("stop"), DONE)[1].content == "x"


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"\xef\xbb\xbf \n"])
def test_a_byte_order_mark_cut_anywhere_leaves_plain_json_and_events_readable(start: bytes) -> None:
    body = choice(message={"content": "x"})
    for whole in (start + body, start + delta(content="x") + delta("stop") + DONE):
        if not (start.endswith(b"\n") and whole.endswith(DONE)):
            for cut in range(6):
                for second in range(cut, 6):
                    assert read(whole[:cut], whole[cut:second], whole[second:])[1].content == "x"


def test_usage_is_read_after_all_that() -> None:
    assert read(delta(content="x"), delta("stop"), usage_event(3, 4), DONE)[1].usage is not None
