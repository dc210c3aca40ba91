"""The decoder of the Messages API: what comes in, in whichever pieces, and that nothing senseless passes for an answer."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handwork.errors import (
    BadRequestError,
    BrokenStreamError,
    ContentFilterError,
    HandworkError,
    ModelError,
    ModelTimeoutError,
    OverloadedError,
    RateLimitError,
    ServerError,
)
from handwork.events import MessageAdded
from handwork.llm.anthropic.encoder import MessagesEncoder
from handwork.llm.anthropic.models import MessagesOptions
from handwork.llm.anthropic.stream import MessageStream
from handwork.schema import (
    Message,
    Reply,
    Request,
    StreamItem,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolArgsDelta,
    Usage,
)
from handwork.store.encode import decode, encode
from tests.support.messages_server import event, message_of, streamed

Block = dict[str, Any]
THOUGHT = {"type": "thinking", "thinking": "Let me see… ü😀\n", "signature": "EqRk/+=="}
UNSEEN = {"type": "thinking", "thinking": "", "signature": "Om1t/ted=="}
REDACTED = {"type": "redacted_thinking", "data": "Em/b+c=="}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "echo 'é'"}}
OTHER = {"type": "tool_use", "id": "toolu_2", "name": "note", "input": {}}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "w", "encrypted": "a/+"}]}


def said(words: str) -> Block:
    return {"type": "text", "text": words}


KINDS: dict[str, list[Block]] = {
    "text": [said("Hello, wörld 😀")],
    "nothing": [],
    "calls": [said("I look."), CALL, OTHER],
    "call alone": [CALL],
    "thinking": [THOUGHT, said("So."), CALL],
    "redacted": [REDACTED, THOUGHT, REDACTED, said("So.")],
    "unseen": [UNSEEN, CALL],
    "interleaved": [THOUGHT, said("One."), REDACTED, said("Two."), CALL, THOUGHT, OTHER],
    "server tools": [said("I search."), SEARCH, FOUND, said("Found."), CALL],
}


def read(raw: bytes, size: int = 1 << 20) -> tuple[Reply, list[StreamItem]]:
    decoder = MessageStream()
    items = [item for at in range(0, len(raw), size) for item in decoder.feed(raw[at : at + size])]
    return decoder.finish(), items


def reply_of(content: list[Block], **fields: Any) -> Reply:
    stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
    return read(b"".join(streamed(message_of(content, stop) | fields)))[0]


@pytest.mark.parametrize("size", [1, 2, 7, 97, 1 << 20])
@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_the_same_in_pieces_of_any_size_and_as_one_body(kind: str, size: int) -> None:
    content = KINDS[kind]
    message = message_of(content, "tool_use" if CALL in content else "end_turn")
    reply, items = read(b"".join(streamed(message)), size)
    whole, none = read(json.dumps(message).encode(), size)
    text = "".join(block["text"] for block in content if block["type"] == "text")
    calls = [block for block in content if block["type"] == "tool_use"]
    assert (reply.content or "", whole.content or "") == (text, text)
    assert [json.loads(call.function.arguments) for call in reply.tool_calls] == [call["input"] for call in calls]
    assert [(call.id, call.function.name) for call in whole.tool_calls] == [
        (call["id"], call["name"]) for call in calls
    ]
    assert (reply.thinking, reply.opaque, reply.finish_reason) == (whole.thinking, whole.opaque, whole.finish_reason)
    assert reply.finish_reason == ("tool_calls" if calls else "stop")
    assert (reply.model, none) == ("claude-test", [])
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == text
    thoughts = "".join(block["thinking"] for block in content if block["type"] == "thinking")
    assert "".join(item.text for item in items if isinstance(item, ThinkingDelta)) == thoughts
    for place, call in enumerate(reply.tool_calls):
        deltas = [item for item in items if isinstance(item, ToolArgsDelta) and item.index == place]
        assert {(delta.id, delta.name) for delta in deltas} == {(call.id, call.function.name)}
        assert "".join(delta.text for delta in deltas) == call.function.arguments


@pytest.mark.parametrize("kind", [kind for kind, content in KINDS.items() if content])
def test_blocks_go_back_byte_for_byte_and_in_their_order_through_the_journal(kind: str) -> None:
    message = reply_of(KINDS[kind]).to_message()
    row = encode(MessageAdded(session_id="s", message=message))
    journaled = decode("s", 1, row)
    assert isinstance(journaled, MessageAdded)
    assert journaled.message == message
    for sent in (message, journaled.message):
        body = MessagesEncoder(MessagesOptions("m")).encode(Request([Message.user_message("x"), sent]))
        assert json.loads(body.data)["messages"][1]["content"] == KINDS[kind]


def test_all_that_one_read_brings_of_a_kind_is_one_item() -> None:
    _, items = read(b"".join(streamed(message_of(KINDS["thinking"], "tool_use"))))
    assert [type(item) for item in items] == [ThinkingDelta, TextDelta, ToolArgsDelta]


def test_a_pair_of_surrogates_that_was_cut_in_two_comes_together() -> None:
    pieces = [
        event("message_start", message=message_of([])),
        event("content_block_start", index=0, content_block=said("")),
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\\ud83d"}}\n\n',
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ude00b\\ud800"}}\n\n',
        event("message_delta", delta={"stop_reason": "end_turn"}),
        event("message_stop"),
    ]
    decoder = MessageStream()
    items = [item for piece in pieces for item in decoder.feed(piece)]
    assert decoder.finish().content == "a😀b\ufffd"
    assert "".join(item.text for item in items if isinstance(item, TextDelta)).startswith("a😀b")


def test_tokens_of_the_cache_are_part_of_the_input_and_later_counts_go_over_earlier_ones() -> None:
    assert reply_of(KINDS["text"]).usage == Usage(input=17, cached=5, written=2, output=20)
    assert reply_of(KINDS["text"], usage={}).usage == Usage(output=20)
    whole, _ = read(json.dumps(message_of([said("x")], usage=None)).encode())
    assert whole.usage is None


@pytest.mark.parametrize(
    ("stop", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "length"),
    ],
)
def test_the_reason_to_stop_is_told_in_our_words(stop: str, finish: str) -> None:
    assert reply_of([said("x")], stop_reason=stop).finish_reason == finish


def test_arguments_that_were_cut_off_are_kept_as_they_are_and_the_end_says_so() -> None:
    cut = streamed(message_of([CALL], "max_tokens"))
    pieces = [piece for piece in cut if b'"input_json_delta"' not in piece or b"command" in piece]
    reply, _ = read(b"".join(pieces))
    assert reply.finish_reason == "length"
    assert reply.tool_calls[0].function.arguments == '{"command": "e'


def test_a_thought_that_was_cut_off_is_text_for_people_only() -> None:
    pieces = [piece for piece in streamed(message_of([THOUGHT], "max_tokens")) if b"signature_delta" not in piece]
    reply, _ = read(b"".join(pieces))
    assert reply.thinking == (Thinking(text=THOUGHT["thinking"]),)


def test_a_refusal_is_an_error_that_says_why() -> None:
    with pytest.raises(ContentFilterError, match=r"declined: it is unsafe"):
        reply_of([said("I ")], stop_reason="refusal", stop_details={"category": "bio", "explanation": "it is unsafe"})
    with pytest.raises(ContentFilterError, match="declined"):
        reply_of([said("I ")], stop_reason="refusal")


@pytest.mark.parametrize(
    ("kind", "message", "error"),
    [
        ("overloaded_error", "Overloaded", OverloadedError),
        ("rate_limit_error", "Too many", RateLimitError),
        ("api_error", "Internal server error", ServerError),
        ("timeout_error", "Request timed out", ModelTimeoutError),
        ("invalid_request_error", "messages.0: bad", BadRequestError),
    ],
)
def test_an_error_inside_an_answer_is_typed_by_its_body(kind: str, message: str, error: type[HandworkError]) -> None:
    body = {"type": kind, "message": message}
    start = event("message_start", message=message_of([]))
    for raw in (start + event("error", error=body), json.dumps({"type": "error", "error": body}).encode()):
        with pytest.raises(error) as caught:
            read(raw)
        assert type(caught.value) is error
        assert message in str(caught.value)
    unnamed = b"data: " + json.dumps({"error": body}).encode() + b"\n\n"
    with pytest.raises(error):
        read(start + unnamed)


START = event("message_start", message=message_of([]))
TEXT = event("content_block_start", index=0, content_block=said(""))
STOP = event("message_delta", delta={"stop_reason": "end_turn"}) + event("message_stop")


def piece(kind: str, **fields: Any) -> bytes:
    return event("content_block_delta", index=0, delta={"type": kind} | fields)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"   ",
        b"event: ping\ndata: {}\n\n",
        START,
        START + TEXT + piece("text_delta", text="Hel"),
        START + TEXT + event("message_delta", delta={"stop_reason": "end_turn"}),
        START + TEXT + event("message_stop"),
        START + event("message_delta", delta={"stop_reason": "whim"}) + event("message_stop"),
        START + START + STOP,
        TEXT + STOP,
        STOP.replace(b"end_turn", b"ever"),
        START + piece("text_delta", text="x") + STOP,
        START + TEXT + TEXT + STOP,
        START + TEXT + piece("text_delta", text=7) + STOP,
        START + TEXT + piece("text_delta") + STOP,
        START + TEXT + piece("thinking_delta", thinking="x") + STOP,
        START + event("content_block_start", index=0, content_block={"type": "tool_use"}) + STOP,
        START + event("content_block_start", index=[], content_block=said("")) + STOP,
        START + event("content_block_start", index=0, content_block=None) + STOP,
        START
        + event("content_block_start", index=0, content_block=SEARCH)
        + piece("input_json_delta", partial_json="{")
        + STOP,
        event("message_start", message=None) + STOP,
        START + b"data: {nonsense\n\n" + STOP,
        START + b"data: 7\n\n" + STOP,
        START + b"data: " + b"[" * 5000 + b"\n\n" + STOP,
        b"<html>",
        b"[]",
        b"{",
        b'{"content": 7}',
        b'{"content": [7]}',
        b'{"id": "x"}',
        json.dumps(message_of([said("x")], "")).encode(),
    ],
)
def test_what_makes_no_sense_is_a_broken_stream(raw: bytes) -> None:
    with pytest.raises(BrokenStreamError):
        read(raw)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_whatever_is_damaged_on_the_way_is_an_answer_or_a_model_error(data: st.DataObject) -> None:
    raw = bytearray(b"".join(streamed(message_of(KINDS["interleaved"], "tool_use"))))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ModelError):
        read(bytes(raw))


def test_pings_comments_unknown_events_and_a_byte_order_mark_are_passed_over() -> None:
    noise = event("ping") + b": keep-alive\n\n" + event("later_kind", x=1)
    raw = b"\xef\xbb\xbf" + START + noise + TEXT + noise + piece("text_delta", text="x") + noise
    raw += piece("citations_delta", citation={}) + event("content_block_stop", index=0) + STOP + b"data: [DONE]\n\n"
    assert read(raw.replace(b"\n", b"\r\n"), 3)[0].content == "x"


def test_an_answer_is_done_with_its_last_event() -> None:
    decoder = MessageStream()
    decoder.feed(b"".join(streamed(message_of([said("x")]))[:-1]))
    assert (decoder.done, decoder.ended) == (False, False)
    decoder.feed(event("message_stop") + b"data: {nonsense\n\n")
    assert (decoder.done, decoder.ended) == (True, True)
    assert decoder.finish().content == "x"


@pytest.mark.parametrize("start", [b"{", b"data: "])
def test_an_answer_without_end_is_given_up(start: bytes) -> None:
    decoder = MessageStream()
    decoder.feed(start)
    more = b" " * (1 << 20)
    with pytest.raises(BrokenStreamError, match="larger than 64 MB"):
        [decoder.feed(more) for _ in range(65)]


def test_a_large_answer_takes_time_in_its_size_and_not_its_square() -> None:
    big = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "x" * 300_000}}
    pieces = [START, event("content_block_start", index=0, content_block=big | {"input": {}})]
    text = json.dumps(big["input"])
    pieces += [piece("input_json_delta", partial_json=text[at : at + 3]) for at in range(0, len(text), 3)]
    raw = b"".join([*pieces, event("message_delta", delta={"stop_reason": "tool_use"}), event("message_stop")])
    reply, _ = read(raw, 4096)
    assert reply.tool_calls[0].function.arguments == text
