"""The encoder of the Messages API: turns that the API takes whatever the history, bytes that never change, marks for the cache."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handwork.llm.anthropic.encoder import MessagesEncoder
from handwork.llm.anthropic.models import MessagesOptions, messages_options
from handwork.llm.chat.encoder import ChatEncoder
from handwork.llm.chat.messages import ChatOptions
from handwork.llm.wire import Body
from handwork.schema import Function, Image, Message, ModelNotice, Request, Role, Tail, Thinking, ToolCall, ToolChoice
from tests.support.messages_rules import check_messages_request

PNG = "iVBORw0KGgo="
PLAIN = MessagesOptions("claude-test")
THINKING = MessagesOptions("claude-test", thinking=2000)
MARK = b',"cache_control":{"type":"ephemeral"}'


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": "d", "parameters": {"type": "object"} | parameters},
    }


TOOLS = (tool("f"), tool("g"))


def thought(text: str = "hm") -> Thinking:
    return Thinking(text=text, opaque={"anthropic": {"type": "thinking", "signature": f"S/{text}+="}})


def asked(*calls: str, text: str | None = None, thinking: bool = True) -> Message:
    made = [ToolCall(id=id, function=Function(name="f", arguments='{"a": 1}')) for id in calls]
    message = Message.from_tool_calls(made, text)
    return replace(message, thinking=(thought(),)) if thinking else message


def result(id: str, text: str = "ok", image: str | None = None, *, is_error: bool = False) -> Message:
    return Message.tool_message(text, "f", id, image, is_error=is_error)


def picture(id: str) -> Message:
    return replace(Message.user_message("Image returned by f:", PNG), tool_call_id=id)


def encode(request: Request, options: MessagesOptions = PLAIN) -> Body:
    return MessagesEncoder(options).encode(request)


def sent(request: Request, options: MessagesOptions = PLAIN) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(encode(request, options).data)
    assert check_messages_request(body) is None
    return body


def turns(request: Request, options: MessagesOptions = PLAIN) -> list[dict[str, Any]]:
    """The messages without marks."""
    messages: list[dict[str, Any]] = json.loads(encode(request, options).data.replace(MARK, b""))["messages"]
    return messages


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def history() -> list[Message]:
    return [
        Message.user_message("Hi"),
        asked("call_1", "call_2", text="I look"),
        result("call_1"),
        result("call_2", "né"),
        picture("call_1"),
        Message.assistant_message("Done"),
        Message.user_message("More"),
        asked("call_3"),
        result("call_3", is_error=True),
        Message.user_message("and hurry"),
    ]


def test_the_order_is_model_settings_tools_system_history_tail_and_the_choice_last() -> None:
    body = sent(Request(history(), "Be good", (tool("b"), tool("a")), Tail("Next?"), temperature=0.5))
    assert list(body) == ["model", "stream", "max_tokens", "temperature", "tools", "system", "messages", "tool_choice"]
    assert [entry["name"] for entry in body["tools"]] == ["a", "b"]
    assert body["tools"][0] == {"name": "a", "description": "d", "input_schema": {"type": "object"}}
    assert body["system"] == [text("Be good") | {"cache_control": {"type": "ephemeral"}}]
    assert (body["stream"], body["max_tokens"], body["tool_choice"]) == (True, 4096, {"type": "auto"})


def test_results_stand_first_in_the_turn_after_their_calls_with_their_images_and_then_what_the_user_said() -> None:
    messages = turns(Request(history(), tail=Tail("Next?")))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    calls = [{"type": "tool_use", "id": id, "name": "f", "input": {"a": 1}} for id in ("call_1", "call_2")]
    thinking = {"type": "thinking", "thinking": "hm", "signature": "S/hm+="}
    assert messages[1] == {"role": "assistant", "content": [thinking, text("I look"), *calls]}
    assert messages[2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "call_1",
            "content": [text("ok"), text("Image returned by f:"), image],
        },
        {"type": "tool_result", "tool_use_id": "call_2", "content": [text("né")]},
    ]
    assert messages[-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "call_3", "is_error": True, "content": [text("ok")]},
        text("and hurry"),
        text("Next?"),
    ]


def test_with_thinking_what_a_user_says_after_a_result_goes_into_it() -> None:
    body = sent(Request(history(), None, TOOLS, Tail("Next?", (Image.from_base64(PNG),))), THINKING)
    last = body["messages"][-1]["content"]
    assert [block["type"] for block in last] == ["tool_result"]
    assert [part.get("text", "image") for part in last[0]["content"]] == ["ok", "and hurry", "Next?", "image"]
    assert body["messages"][4]["content"] == [text("More") | {"cache_control": {"type": "ephemeral"}}]


def test_a_budget_to_think_comes_on_top_of_the_bound_and_rules_out_what_the_api_refuses_beside_it() -> None:
    request = Request(history(), None, TOOLS, tool_choice=ToolChoice.REQUIRED, max_tokens=100, temperature=0.2)
    body = sent(request, THINKING)
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert (body["max_tokens"], body["tool_choice"]) == (2100, {"type": "auto"})
    assert "temperature" not in body


def test_adaptive_thinking_and_an_effort_are_sent_as_newer_models_want_them() -> None:
    adaptive = sent(Request(history(), None, TOOLS), MessagesOptions("m", thinking="adaptive"))
    assert adaptive["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert "output_config" not in adaptive
    assert adaptive["max_tokens"] > 4096
    effort = sent(Request(history(), None, TOOLS), MessagesOptions("m", thinking="low"))
    assert (effort["thinking"]["type"], effort["output_config"]) == ("adaptive", {"effort": "low"})


@pytest.mark.parametrize(
    ("model", "temperature", "forced"),
    [
        ("claude-3-7-sonnet-20250219", True, True),
        ("claude-opus-4-20250514", True, True),
        ("anthropic/claude-sonnet-4.6", True, True),
        ("claude-opus-4-7", False, True),
        ("claude-opus-4-8-20260528", False, True),
        ("claude-sonnet-5", False, False),
        ("claude-mythos-preview", False, False),
        ("claude-2.1", True, True),
        ("claude-instant-1", True, True),
        ("deepseek-chat", True, True),
    ],
)
def test_what_a_model_refuses_is_known_by_its_name(model: str, temperature: bool, forced: bool) -> None:
    options = messages_options(model, 100, 0.5, None)
    body = sent(Request(history(), None, TOOLS, tool_choice=ToolChoice.REQUIRED), options)
    assert ("temperature" in body) is temperature
    assert body["tool_choice"] == {"type": "any" if forced else "auto"}
    assert body["max_tokens"] == (100 if forced else 16_100)  # what it thinks unasked counts, too


@pytest.mark.parametrize(("choice", "wire"), [("auto", "auto"), ("none", "none"), ("required", "any")])
def test_the_choice_of_tools_is_sent_with_the_tools_and_never_without(choice: str, wire: str) -> None:
    messages = [Message.user_message("x")]
    assert sent(Request(messages, tools=TOOLS, tool_choice=ToolChoice(choice)))["tool_choice"] == {"type": wire}
    assert not {"tools", "tool_choice"} & set(sent(Request(messages, tool_choice=ToolChoice(choice))))


def test_a_history_with_calls_declares_their_tools_even_if_none_is_offered() -> None:
    body = sent(Request(history()))
    assert body["tools"] == [{"name": "f", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}]
    assert body["tool_choice"] == {"type": "none"}


def test_schemas_with_variants_at_their_top_become_one_object() -> None:
    variants = [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "integer"}}}]
    offered = tool("x", anyOf=variants, properties={"c": {}})
    (wire,) = sent(Request([Message.user_message("x")], tools=(offered,)))["tools"]
    assert wire["input_schema"] == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {}},
    }


# ---- the stored part


def steps(messages: list[Message]) -> list[int]:
    """How long a history is when a request is made: all calls are answered, with their images."""
    ends = []
    for at in range(1, len(messages) + 1):
        before, after = messages[at - 1], messages[at] if at < len(messages) else None
        within = after is not None and (after.role is Role.TOOL or after.tool_call_id)
        if not within and not before.tool_calls:
            ends.append(at)
    return ends


def run_of(messages: list[Message], options: MessagesOptions) -> list[Body]:
    """The bodies of a run whose history grows, each with another tail."""
    encoder = MessagesEncoder(options)
    return [
        encoder.encode(Request(messages[:count], "sys", TOOLS, Tail(f"step {count}") if count % 3 else None))
        for count in steps(messages)
    ]


def stored(body: Body) -> bytes:
    return body.data[: body.stored].replace(MARK, b"")


@pytest.mark.parametrize("options", [PLAIN, THINKING], ids=["plain", "thinking"])
def test_each_request_begins_with_the_stored_part_of_the_one_before_marks_apart(options: MessagesOptions) -> None:
    bodies = run_of(history(), options)
    for before, after in pairwise(bodies):
        assert stored(after).startswith(stored(before))
        assert after.stored > before.stored
    for body in bodies:
        assert check_messages_request(json.loads(body.data)) is None


_KINDS = ["user", "empty", "image", "turn", "pictures", "answer", "blank", "system", "foreign", "thought"]


def made(kind: str, n: int) -> list[Message]:
    reasoning = (Thinking(text="r", opaque={"reasoning_content": "r"}), Thinking(text="cut off"))
    return {
        "user": [Message.user_message(f"u{n}")],
        "empty": [Message.user_message("  ")],
        "image": [Message.user_message(f"i{n}", PNG)],
        "turn": [asked(f"c{n}", f"d{n}", thinking=n % 2 == 0), result(f"c{n}"), result(f"d{n}", "", PNG)],
        "pictures": [asked(f"e{n}", f"g{n}"), result(f"e{n}"), result(f"g{n}"), picture(f"g{n}"), picture(f"e{n}")],
        "answer": [Message.assistant_message(f"a{n} ")],
        "blank": [Message.assistant_message(" \n")],
        "system": [Message.system_message(f"s{n}")],
        "foreign": [
            replace(Message.from_tool_calls([ToolCall(f"x.{n}", Function("a b"))]), thinking=reasoning),
            result(f"x.{n}"),
        ],
        "thought": [replace(Message.assistant_message(f"t{n}"), thinking=(thought(),))],
    }[kind]


@settings(deadline=None)
@given(st.lists(st.sampled_from(_KINDS), max_size=10), st.sampled_from([None, 2000, "adaptive"]), st.booleans())
def test_any_history_is_taken_and_grows_without_changing_what_was_sent(
    kinds: list[str], thinking: int | str | None, tail: bool
) -> None:
    messages = [message for n, kind in enumerate(kinds) for message in made(kind, n)]
    options = MessagesOptions("m", thinking=thinking)
    encoder = MessagesEncoder(options)
    bodies = []
    for count in steps(messages):
        body = encoder.encode(Request(messages[:count], "sys", TOOLS, Tail("the tail") if tail else None))
        assert check_messages_request(json.loads(body.data)) is None
        assert body.data.count(b"the tail") == tail
        fresh = MessagesEncoder(options).encode(
            Request(messages[:count], "sys", TOOLS, Tail("the tail") if tail else None)
        )
        assert fresh.data == body.data
        bodies.append(body)
    for before, after in pairwise(bodies):
        assert messages_part(after).startswith(messages_part(before))


def messages_part(body: Body) -> bytes:
    """From the messages on: a budget to think may have to be dropped for the requests of one loop."""
    return stored(body).partition(b'"messages":')[2]


def test_a_history_that_was_rewritten_is_encoded_anew() -> None:
    encoder = MessagesEncoder(PLAIN)
    encoder.encode(Request(history()))
    other = [Message.user_message("Other"), Message.assistant_message("A"), Message.user_message("B")]
    assert encoder.encode(Request(other)).data == encode(Request(other)).data
    assert encoder.encode(Request(other[:1])).data == encode(Request(other[:1])).data


def test_a_step_works_on_what_is_new_only() -> None:
    encoder, messages = MessagesEncoder(PLAIN), history()
    before = encoder.encode(Request(messages))
    for message in messages[:8]:
        object.__setattr__(message, "encoded", None)
    after = encoder.encode(Request([*messages, asked("new"), result("new")]))
    assert stored(after).startswith(stored(before))
    assert not any(message.encoded for message in messages[:8])


def test_another_wire_in_between_leaves_nothing_behind() -> None:
    messages = history()
    before = encode(Request(messages)).data
    ChatEncoder(ChatOptions("m")).encode(Request(messages))
    assert encode(Request(messages)).data == before


# ---- marks


def marked(body: dict[str, Any]) -> list[str]:
    """What is marked: the text, id or name of each block."""
    blocks = [*body.get("tools", ()), *body.get("system", ())]
    blocks += [block for message in body["messages"] for block in message["content"]]
    names = ("text", "tool_use_id", "id", "name")
    return [next(block[name] for name in names if name in block) for block in blocks if "cache_control" in block]


def test_marked_are_the_system_prompt_and_where_this_and_the_last_request_end() -> None:
    messages = history()
    assert marked(sent(Request(messages[:1], "sys", TOOLS, Tail("t")))) == ["sys", "Hi"]
    assert marked(sent(Request(messages[:5], "sys", TOOLS, Tail("t")))) == ["sys", "Hi", "call_2"]
    assert marked(sent(Request(messages, "sys", TOOLS, Tail("t")))) == ["sys", "More", "and hurry"]
    assert marked(sent(Request(messages[:5], None, TOOLS))) == ["g", "Hi", "call_2"]


def test_where_the_tail_goes_into_a_result_the_block_before_it_is_marked() -> None:
    messages = history()
    assert marked(sent(Request(messages[:5], "sys", TOOLS, Tail("t")), THINKING)) == ["sys", "Hi", "call_1"]
    again = [*messages, asked("call_4"), result("call_4")]
    assert marked(sent(Request(again, "sys", TOOLS, Tail("t")), THINKING)) == ["sys", "call_3", "call_4"]
    assert sent(Request(again, "sys", TOOLS), THINKING)["messages"][-2]["content"][-1]["type"] == "tool_use"


# ---- histories of every kind


def test_a_call_without_a_result_gets_one_and_a_result_without_a_call_becomes_words() -> None:
    messages = turns(
        Request([asked("a", "b"), result("b"), result("z", "lost"), Message.assistant_message("x"), result("q")])
    )
    assert messages[0]["content"] == [text("(empty)")]
    first, second, words = messages[2]["content"]
    assert (first["tool_use_id"], first["is_error"], second["tool_use_id"]) == ("a", True, "b")
    assert words == text("Result of f:\nlost")
    assert messages[4]["content"] == [text("Result of f:\nok")]
    open_call = turns(Request([Message.user_message("x"), asked("a")]))
    assert open_call[-1]["content"][0]["tool_use_id"] == "a"


def test_ids_that_come_again_are_made_distinct_and_each_call_keeps_its_own_result() -> None:
    twice = [asked("call_0", "call_0"), result("call_0", "one"), picture("call_0"), result("call_0", "two")]
    messages = [
        Message.user_message("x"),
        *twice,
        asked("call_0"),
        result("call_0", "three"),
        result("call_0", "extra"),
    ]
    wire = sent(Request(messages, None, TOOLS))["messages"]
    ids = [block["id"] for message in wire for block in message["content"] if block["type"] == "tool_use"]
    assert ids == ["call_0", "call_0_2", "call_0_3"]
    results = [block for message in wire for block in message["content"] if block["type"] == "tool_result"]
    assert [block["tool_use_id"] for block in results] == ids
    assert [block["content"][0]["text"] for block in results] == ["one", "two", "three"]
    assert len(results[0]["content"]) == 3
    assert wire[-1]["content"][-1]["text"] == "Result of f:\nextra"
    encoder = MessagesEncoder(PLAIN)
    grown = [encoder.encode(Request(messages[:count], None, TOOLS)) for count in (1, 5, 8)]
    assert all(stored(after).startswith(stored(before)) for before, after in pairwise(grown))


def test_two_answers_in_a_row_and_one_at_the_end_are_followed_by_a_turn_of_the_users() -> None:
    messages = turns(Request([Message.user_message("x"), *[Message.assistant_message("a")] * 2]))
    assert [message["content"][0]["text"] for message in messages] == ["x", "a", "Continue.", "a", "Continue."]


def test_ids_and_names_that_the_api_refuses_are_made_fit_the_same_way_for_call_and_result() -> None:
    call = ToolCall(id="functions.f:0", function=Function(name="my tool!", arguments="{bad"))
    messages = turns(Request([Message.user_message("x"), Message.from_tool_calls([call]), result("functions.f:0")]))
    used = messages[1]["content"][0]
    assert (used["name"], used["input"]) == ("my_tool_", {"invalid_arguments": "{bad"})
    assert used["id"] == messages[2]["content"][0]["tool_use_id"] != "functions.f:0"


def test_a_budget_waits_until_the_calls_that_began_without_a_thought_are_done() -> None:
    messages = [Message.user_message("x"), asked("a", thinking=False), result("a")]
    body = sent(Request(messages, None, TOOLS, Tail("t"), temperature=0.5), THINKING)
    assert ("thinking" in body, body["max_tokens"], body["temperature"]) == (False, 4096, 0.5)
    later = [*messages, asked("b"), result("b"), Message.assistant_message("done"), Message.user_message("y")]
    assert "thinking" in sent(Request(later, None, TOOLS, Tail("t")), THINKING)
    assert "thinking" in sent(Request(messages, None, TOOLS), MessagesOptions("m", thinking="adaptive"))


def test_reasoning_of_other_providers_is_never_sent_and_ours_to_no_other() -> None:
    foreign = (Thinking(text="secret", opaque={"reasoning_content": "secret"}), Thinking(text="bare"))
    message = replace(Message.assistant_message("a"), thinking=foreign, opaque={"extra_content": {"message": {"g": 1}}})
    assert turns(Request([Message.user_message("x"), message]))[1]["content"] == [text("a")]
    own = replace(Message.assistant_message("a"), thinking=(thought("mine"),), opaque={"anthropic": ["thinking", 1]})
    wire = ChatEncoder(ChatOptions("m")).encode(Request([own])).data
    assert json.loads(wire)["messages"] == [{"role": "assistant", "content": "a"}]


def test_a_thought_at_the_end_is_left_out_and_one_without_a_signature_too() -> None:
    order = {"anthropic": [1, "thinking"]}
    message = replace(Message.assistant_message("a"), thinking=(thought(),), opaque=order)
    assert turns(Request([Message.user_message("x"), message]))[1]["content"] == [text("a")]
    only = replace(Message.assistant_message(), thinking=(thought(),))
    assert len(turns(Request([Message.user_message("x"), only, Message.user_message("y")]))) == 1


@pytest.mark.parametrize("opaque", [[9], ["thinking", "call", 1], "x", {}, [None], ["thinking"], [1.5]])
def test_an_order_that_does_not_fit_any_more_is_the_plain_order(opaque: Any) -> None:
    message = replace(Message.assistant_message("a"), thinking=(thought(),), opaque={"anthropic": opaque})
    content = turns(Request([Message.user_message("x"), message]))[1]["content"]
    assert [block["type"] for block in content] == ["thinking", "text"]


def test_images_that_cannot_be_sent_are_notes_and_said_once() -> None:
    gone = Message(role=Role.USER, content="x", images=(Image(hash="h", media_type="image/png"),))
    odd = Message(role=Role.USER, content="x", images=(Image(hash="h", media_type="image/bmp", data=PNG),))
    encoder = MessagesEncoder(PLAIN)
    body = encoder.encode(Request([gone, odd]))
    assert [type(notice) for notice in body.notices] == [ModelNotice, ModelNotice]
    assert body.data.count(b"was left out") == 2
    assert encoder.encode(Request([gone, odd])).notices == ()


def test_without_messages_the_tail_alone_is_sent_and_without_it_a_turn_all_the_same() -> None:
    assert turns(Request([], tail=Tail("t"))) == [{"role": "user", "content": [text("t")]}]
    assert turns(Request([], "sys")) == [{"role": "user", "content": [text("Continue.")]}]


def test_lone_surrogates_anywhere_do_not_break_the_body() -> None:
    call = ToolCall(id="c", function=Function(name="f\ud800", arguments="{}"))
    messages = [Message.user_message("a\ud83d"), Message.from_tool_calls([call], "x"), result("c", "\udc00")]
    sent(Request(messages, "sys\ud800", (tool("a", title="\ud800"),), Tail("t\ud800")))
