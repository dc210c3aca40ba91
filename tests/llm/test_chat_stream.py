"""The decoder of chat completions: every server's way to say the same."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handwork.errors import (
    AuthenticationError,
    BadRequestError,
    BrokenStreamError,
    ContentFilterError,
    HandworkError,
    ModelError,
    OverloadedError,
    RateLimitError,
    ServerError,
    TokenLimitExceeded,
)
from handwork.llm.chat.stream import ChatStream
from handwork.schema import Reply, StreamItem, TextDelta, ThinkingDelta, ToolArgsDelta, Usage
from tests.support.fault_server import DONE, call_delta, delta, event, usage_event


def decode(*pieces: bytes) -> tuple[list[StreamItem], Reply]:
    decoder = ChatStream()
    items = [item for piece in pieces for item in decoder.feed(piece)]
    return items, decoder.finish()


def reply_of(*pieces: bytes) -> Reply:
    return decode(*pieces)[1]


def calls_of(*pieces: bytes) -> list[tuple[str, str, str]]:
    reply = reply_of(*pieces, delta("tool_calls"), DONE)
    return [(call.id, call.function.name, call.function.arguments) for call in reply.tool_calls]


def call_part(index: int | None = 0, id: str | None = None, name: str | None = None, arguments: Any = "") -> bytes:
    part: dict[str, Any] = {"function": {"arguments": arguments}}
    if index is not None:
        part["index"] = index
    if id is not None:
        part["id"] = id
    if name is not None:
        part["function"]["name"] = name
    return delta(tool_calls=[part])


def test_text_arrives_as_deltas_and_once_more_as_the_reply() -> None:
    items, reply = decode(delta(content="Hel"), delta(content="lo"), delta("stop"), usage_event(10, 5), DONE)
    assert items == [TextDelta("Hel"), TextDelta("lo")]
    assert reply == Reply(content="Hello", usage=Usage(input=10, output=5), model="m")


def test_what_one_read_brings_is_one_item_a_kind() -> None:
    thought = delta(reasoning_content="a") + delta(reasoning_content="b")
    items, _ = decode(thought + delta(content="c") + delta(content="d") + call_delta("f", "{}") + delta("stop") + DONE)
    assert items == [ThinkingDelta("ab"), TextDelta("cd"), ToolArgsDelta(0, "call_1", "f", "{}")]


WHOLE = (
    b": note\n\n"
    + delta(role="assistant", content="")
    + delta(reasoning_content="hm é")
    + delta(content="Grüße 😀")
    + call_part(0, "a", "first", "")
    + call_part(0, arguments='{"x": "')
    + call_part(1, "b", "second", '{"y"')
    + call_part(0, arguments='ü"}')
    + call_part(1, arguments=": 2}")
    + delta("tool_calls")
    + usage_event(3, 4)
    + DONE
)


@settings(deadline=None)
@given(st.lists(st.integers(0, len(WHOLE)), max_size=40))
def test_a_cut_at_any_byte_changes_nothing(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(WHOLE)]
    items, reply = decode(*[WHOLE[a:b] for a, b in pairwise(edges)])
    assert reply == reply_of(WHOLE)
    assert reply.content == "Grüße 😀"
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "Grüße 😀"
    assert [call.function.arguments for call in reply.tool_calls] == ['{"x": "ü"}', '{"y": 2}']


def test_a_surrogate_pair_split_over_two_events_is_one_character() -> None:
    first = b'data: {"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}\n\n'
    second = b'data: {"choices":[{"index":0,"delta":{"content":"\\ude00b"}}]}\n\n'
    items, reply = decode(first, second, delta("stop"), DONE)
    assert reply.content == "a😀b"
    assert items == [TextDelta("a"), TextDelta("😀b")]


def test_half_a_pair_stands_where_it_came_whatever_follows() -> None:
    items, reply = decode(delta(content="\ud83d"), delta(content="abc"), delta(content="é"), delta("stop"), DONE)
    text = "".join(item.text for item in items if isinstance(item, TextDelta))
    assert text == reply.content
    assert text.endswith("abcé")


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    lone = b'data: {"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}\n\n'
    assert reply_of(lone, delta("stop"), DONE).content == "a\ufffd"


@pytest.mark.parametrize("choices", [None, []])
def test_events_without_choices_are_passed_over(choices: object) -> None:
    assert reply_of(event({"choices": choices}), delta(content="x"), delta("stop"), DONE).content == "x"


def test_an_answer_without_any_choice_is_broken() -> None:
    with pytest.raises(BrokenStreamError, match="no choice"):
        reply_of(event({"choices": []}), DONE)


def test_a_reply_with_neither_text_nor_calls_is_a_reply() -> None:
    assert reply_of(delta("stop"), DONE) == Reply(content=None, model="m")


@pytest.mark.parametrize("pieces", [(), (delta(content="half"),), (b": only comments\n\n",), (b"<html>",)])
def test_a_stream_without_its_end_is_broken(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(BrokenStreamError, match="without a finish reason"):
        reply_of(*pieces)


def test_done_alone_and_a_finish_reason_alone_end_a_stream() -> None:
    assert reply_of(delta(content="x"), DONE).content == "x"
    assert reply_of(delta(content="x"), delta("stop")).content == "x"


@pytest.mark.parametrize("data", [b"{oops", b'{"a":', b"[1]", b'"text"', b"7", b"[" * 4000])
def test_a_malformed_event_is_a_broken_stream_that_shows_it(data: bytes) -> None:
    with pytest.raises(BrokenStreamError, match="event") as caught:
        reply_of(b"data: " + data + b"\n\n")
    assert len(str(caught.value)) < 600


def test_events_without_blank_lines_between_them_are_read() -> None:
    glued = (delta(content="a") + delta(content="b") + delta("stop") + DONE).replace(b"\n\n", b"\n")
    assert reply_of(glued).content == "ab"


def test_an_answer_of_plain_json_is_read_as_well() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Hi", "tool_calls": [call]}
    body = json.dumps(
        {
            "model": "m",
            "choices": [{"message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        },
        indent=1,
    ).encode()
    items, reply = decode(b"\xef\xbb\xbf", b" \n" + body[:50], body[50:])
    assert items == []
    assert (reply.content, reply.tool_calls[0].id, reply.finish_reason) == ("Hi", "c", "tool_calls")
    assert reply.usage == Usage(input=1, output=2)


# ---- tool calls


def test_calls_in_pieces_are_put_together_by_index() -> None:
    pieces = (
        call_part(0, "a", "f", ""),
        call_part(1, "b", "g", "{"),
        call_part(0, arguments="{}"),
        call_part(1, arguments="}"),
    )
    assert calls_of(*pieces) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_whole_calls_without_index_are_several_calls() -> None:
    assert calls_of(call_part(None, "a", "f", "{}"), call_part(None, "b", "f", "{}")) == [
        ("a", "f", "{}"),
        ("b", "f", "{}"),
    ]


def test_whole_calls_under_one_index_and_without_ids_are_several_calls() -> None:
    assert calls_of(call_part(0, "", "f", '{"a":1}'), call_part(0, "", "f", '{"a":2}')) == [
        ("", "f", '{"a":1}'),
        ("", "f", '{"a":2}'),
    ]


def test_another_id_under_the_same_index_begins_another_call() -> None:
    pieces = (
        call_part(0, "a", "f", "{"),
        call_part(0, arguments="}"),
        call_part(0, "b", "f", "{"),
        call_part(0, arguments="}"),
    )
    assert calls_of(*pieces) == [("a", "f", "{}"), ("b", "f", "{}")]


def test_whole_calls_with_one_id_are_several_calls() -> None:
    assert len(calls_of(call_part(0, "x", "f", "{}"), call_part(1, "x", "g", "{}"))) == 2
    assert len(calls_of(call_part(0, "x", "f", "{}"), call_part(0, "y", "f", "{}"))) == 2


def test_a_call_whose_name_and_id_come_with_every_piece_is_one_call() -> None:
    pieces = [call_part(0, "a", "f", piece) for piece in ('{"x"', ": {", "}", "}")]
    assert calls_of(*pieces) == [("a", "f", '{"x": {}}')]


def test_pieces_without_index_and_id_belong_to_the_last_call() -> None:
    assert calls_of(call_part(None, "a", "f", ""), call_part(None, arguments="{"), call_part(None, arguments="}")) == [
        ("a", "f", "{}")
    ]


def test_a_name_in_pieces_is_put_together() -> None:
    assert calls_of(call_part(0, "a", "get_"), call_part(0, name="weather"), call_part(0, arguments="{}")) == [
        ("a", "get_weather", "{}")
    ]


def test_arguments_sent_as_an_object_become_text() -> None:
    assert calls_of(call_part(0, "a", "f", {"x": 1})) == [("a", "f", '{"x":1}')]


def test_the_old_function_call_field_is_a_call() -> None:
    reply = reply_of(delta(function_call={"name": "f", "arguments": "{}"}), delta("function_call"), DONE)
    assert (reply.tool_calls[0].function.name, reply.finish_reason) == ("f", "tool_calls")


def test_arguments_of_a_megabyte_in_small_pieces_take_linear_time() -> None:
    pieces = [call_part(0, "a", "f", "")] + [call_part(0, arguments="x" * 16)] * 16384
    assert len(calls_of(*pieces)[0][2]) == 262144


# ---- ends


@pytest.mark.parametrize(
    ("said", "meant"),
    [("stop", "stop"), ("STOP", "stop"), ("MAX_TOKENS", "length"), ("model_length", "length")]
    + [(word, "stop") for word in ("eos", "eos_token", "end_turn", "stop_sequence", "COMPLETE", "FinishReason.STOP")]
    + [(word, "length") for word in ("max_tokens", "MAX_OUTPUT_TOKENS", "ERROR_LIMIT")]
    + [(word, "tool_calls") for word in ("tool_use", "function_call", "tool-calls", "TOOL_CALL")],
)
def test_finish_reasons_are_in_openais_words(said: str, meant: str) -> None:
    assert reply_of(delta(content="x"), delta(said), DONE).finish_reason == meant


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("content_filter", ContentFilterError),
        ("SAFETY", ContentFilterError),
        ("error", ServerError),
        ("insufficient_system_resource", OverloadedError),
        ("MALFORMED_FUNCTION_CALL", BrokenStreamError),
    ],
)
def test_finish_reasons_that_are_failures_are_errors(said: str, error: type[HandworkError]) -> None:
    with pytest.raises(error):
        reply_of(delta(content="par"), delta(said), DONE)


def test_a_refusal_is_a_content_filter_error_that_says_it() -> None:
    with pytest.raises(ContentFilterError, match="I can't help with that"):
        reply_of(delta(refusal="I can't help "), delta(refusal="with that"), delta("stop"), DONE)


# ---- errors inside the stream


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, RateLimitError),
        ({"error": {"message": "Rate limit reached", "type": "requests"}}, RateLimitError),
        ({"error": {"code": "502", "message": "upstream"}}, ServerError),
        ({"error": {"message": "Overloaded", "type": "overloaded_error"}}, OverloadedError),
        ({"error": {"message": "maximum context length is 8192 tokens", "code": 400}}, TokenLimitExceeded),
        ({"error": {"message": "no", "type": "invalid_request_error"}}, BadRequestError),
        ({"error": {"message": "bad key", "code": 401}}, AuthenticationError),
        ({"error": "something broke"}, ServerError),
        ({"object": "error", "message": "bad", "code": 400}, BadRequestError),
        ({"detail": "Internal"}, ServerError),
    ],
)
def test_an_error_inside_a_200_stream_is_typed_by_its_body(body: dict[str, Any], error: type[ModelError]) -> None:
    for pieces in ((delta(content="par"), event(body)), (json.dumps(body).encode(),)):
        with pytest.raises(error) as caught:
            reply_of(*pieces)
        assert type(caught.value) is error


def test_an_event_named_error_is_an_error_whatever_it_holds() -> None:
    with pytest.raises(ServerError, match="broken pipe"):
        reply_of(b'event: error\ndata: {"message": "broken pipe"}\n\n')


# ---- reasoning and usage


def test_reasoning_content_is_kept_for_the_way_back() -> None:
    reply = reply_of(
        delta(reasoning_content="a"), delta(reasoning_content="b"), delta(content="x"), delta("stop"), DONE
    )
    assert [(part.text, part.opaque) for part in reply.thinking] == [("ab", {"reasoning_content": "ab"})]


def test_reasoning_details_are_put_together_and_kept_whole() -> None:
    def detail(**fields: object) -> bytes:
        return delta(
            content="",
            reasoning=fields.get("text"),
            reasoning_details=[{"type": "reasoning.text", "index": 0, **fields}],
        )

    items, reply = decode(
        detail(text="He"), detail(text="y"), detail(signature="s1g="), delta(content="x"), delta("stop"), DONE
    )
    assert [item for item in items if isinstance(item, ThinkingDelta)] == [ThinkingDelta("He"), ThinkingDelta("y")]
    whole = {"type": "reasoning.text", "index": 0, "text": "Hey", "signature": "s1g="}
    assert [part.opaque for part in reply.thinking] == [{"reasoning_details": whole}]


def test_mistrals_content_parts_are_text_and_thinking() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "Hi"}]
    items, reply = decode(delta(content=parts), delta("stop"), DONE)
    assert items == [ThinkingDelta("hm"), TextDelta("Hi")]
    assert (reply.content, reply.thinking[0].text) == ("Hi", "hm")


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": -1, "completion_tokens": "x"}, "many"]
)
def test_a_missing_or_senseless_usage_is_none(usage: object) -> None:
    assert reply_of(delta(content="x"), delta("stop"), event({"choices": [], "usage": usage}), DONE).usage is None


def test_usage_counts_cached_written_and_reasoning_tokens() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    reply = reply_of(delta(content="x"), delta("stop"), event({"choices": [], "usage": usage}), DONE)
    assert reply.usage == Usage(input=100, cached=60, written=10, output=20, reasoning=5)


def test_tokens_that_only_the_total_counts_are_reasoning() -> None:
    usage = {"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109}
    reply = reply_of(delta(content="x"), delta("stop"), event({"choices": [], "usage": usage}), DONE)
    assert reply.usage == Usage(input=35, output=74, reasoning=62)


def test_a_cost_that_the_provider_reports_is_taken() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}
    assert reply_of(delta(content="x"), delta("stop"), event({"choices": [], "usage": usage}), DONE).cost_usd == 0.25
