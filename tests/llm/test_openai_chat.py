"""The encoder of chat completions: what goes out, in which order, and that nothing sent before ever changes."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handwork.llm.chat.encoder import ChatEncoder
from handwork.llm.chat.messages import ChatOptions, MessageEncoder, safe_arguments, safe_id, safe_name
from handwork.llm.wire import Body
from handwork.schema import Function, Image, Message, Request, Role, Tail, Thinking, ToolCall, ToolChoice
from tests.support.strict_server import check_request

PNG = "iVBORw0KGgo="
FOLDING = ChatOptions("m", fold_user_turns=True, short_ids=True)


def tool(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": {"type": "object"}}}


def asked(*calls: str, text: str | None = None) -> Message:
    return Message.from_tool_calls(
        [ToolCall(id=id, function=Function(name="f", arguments='{"a": 1}')) for id in calls], text
    )


def result(id: str, text: str = "ok", image: str | None = None) -> Message:
    return Message.tool_message(text, "f", id, image)


def encode(request: Request, options: ChatOptions | None = None) -> Body:
    return ChatEncoder(options or ChatOptions("m")).encode(request)


def sent(request: Request, options: ChatOptions | None = None) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(encode(request, options).data)
    return body


def history() -> list[Message]:
    return [
        Message.user_message("Hi"),
        asked("call_1", "call_2", text="I look"),
        result("call_1"),
        result("call_2", "né"),
        Message.user_message("Look", PNG),
        Message.assistant_message("Done"),
        Message.user_message("More"),
        asked("call_3"),
        result("call_3"),
    ]


def test_the_order_is_model_tools_system_history_tail_and_the_choice_last() -> None:
    request = Request(history(), "Be good", (tool("b"), tool("a")), Tail("Next?"), temperature=0.5)
    body = sent(request)
    assert list(body) == ["model", "stream", "stream_options", "temperature", "tools", "messages", "tool_choice"]
    assert [entry["function"]["name"] for entry in body["tools"]] == ["a", "b"]
    assert body["messages"][0] == {"role": "system", "content": "Be good"}
    assert body["messages"][-1] == {"role": "user", "content": "Next?"}
    assert check_request(body) is None


def test_messages_are_written_as_the_wire_has_them() -> None:
    messages = sent(Request(history()))["messages"]
    function = {"name": "f", "arguments": '{"a": 1}'}
    assert messages[1] == {
        "role": "assistant",
        "content": "I look",
        "tool_calls": [{"id": id, "type": "function", "function": function} for id in ("call_1", "call_2")],
    }
    assert messages[3] == {"role": "tool", "tool_call_id": "call_2", "content": "né"}
    url = {"url": f"data:image/png;base64,{PNG}"}
    assert messages[4] == {
        "role": "user",
        "content": [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": url}],
    }
    assert messages[7]["content"] is None


@pytest.mark.parametrize("choice", list(ToolChoice))
def test_the_choice_of_tools_is_sent_with_the_tools_and_never_without(choice: ToolChoice) -> None:
    body = sent(Request(history(), tools=(tool("a"),), tool_choice=choice))
    assert (body["tool_choice"], len(body["tools"])) == (choice.value, 1)
    assert not {"tools", "tool_choice"} & set(sent(Request(history(), tool_choice=choice)))


def test_reasoning_models_get_their_own_bound_and_no_temperature() -> None:
    options = ChatOptions("gpt-5", max_tokens=100, temperature=1.0, completion_tokens=True)
    body = sent(Request(history(), temperature=0.2), options)
    assert body["max_completion_tokens"] == 100
    assert not {"max_tokens", "temperature"} & set(body)


def test_the_bound_of_the_request_goes_over_the_settings() -> None:
    assert sent(Request(history(), max_tokens=7), ChatOptions("m", max_tokens=100))["max_tokens"] == 7


# ---- the stored part


def run_of(messages: list[Message], options: ChatOptions, encoder: ChatEncoder | None = None) -> list[Body]:
    """The bodies of a run whose history grows by one message a request, each with another tail."""
    encoder = encoder or ChatEncoder(options)
    tools = (tool("a"),)
    return [
        encoder.encode(Request(messages[:count], "sys", tools, Tail(f"step {count}") if count % 3 else None))
        for count in range(len(messages) + 1)
    ]


@pytest.mark.parametrize("options", [ChatOptions("m"), FOLDING], ids=["plain", "folding"])
def test_each_request_begins_with_the_stored_part_of_the_one_before(options: ChatOptions) -> None:
    bodies = run_of(history(), options)
    for before, after in pairwise(bodies):
        assert after.data.startswith(before.data[: before.stored])
        assert after.stored > before.stored
        json.loads(after.data)


_MESSAGES = st.sampled_from(["user", "image", "turn", "answer", "system"])


@settings(deadline=None)
@given(st.lists(_MESSAGES, max_size=12), st.booleans())
def test_any_history_grows_without_changing_what_was_sent(kinds: list[str], folding: bool) -> None:
    made = {
        "user": lambda n: [Message.user_message(f"u{n}")],
        "image": lambda n: [Message.user_message(f"i{n}", PNG)],
        "turn": lambda n: [asked(f"c{n}", f"d{n}"), result(f"c{n}"), result(f"d{n}", "", PNG)],
        "answer": lambda n: [Message.assistant_message(f"a{n}")],
        "system": lambda n: [Message.system_message(f"s{n}")],
    }
    messages = [message for n, kind in enumerate(kinds) for message in made[kind](n)]
    options = FOLDING if folding else ChatOptions("m")
    bodies = run_of(messages, options)
    for before, after in pairwise(bodies):
        assert after.data.startswith(before.data[: before.stored])
    body = json.loads(ChatEncoder(options).encode(Request(messages, "sys", (), Tail("t"))).data)
    assert check_request(body, user_after_tool=not folding) is None
    assert str(body).count("'t'") == 1


def test_the_choice_may_change_without_touching_the_stored_part() -> None:
    encoder = ChatEncoder(ChatOptions("m"))
    one, two = (
        encoder.encode(Request(history(), tools=(tool("a"),), tool_choice=choice))
        for choice in (ToolChoice.AUTO, ToolChoice.NONE)
    )
    assert one.data[: one.stored] == two.data[: two.stored]


def test_equal_tools_in_another_tuple_keep_their_bytes() -> None:
    encoder = ChatEncoder(ChatOptions("m"))
    one = encoder.encode(Request(history(), tools=(tool("a"), tool("b"))))
    two = encoder.encode(Request(history(), tools=(tool("a"), tool("b"))))
    assert one.data == two.data


def test_a_message_is_encoded_once_and_again_only_for_another_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Message] = []
    whole = MessageEncoder.whole

    def counted(self: MessageEncoder, message: Message) -> bytes:
        seen.append(message)
        return whole(self, message)

    monkeypatch.setattr(MessageEncoder, "whole", counted)
    messages = [Message.user_message("a"), Message.assistant_message("b")]
    for _ in range(3):
        ChatEncoder(ChatOptions("m")).encode(Request(messages))
    assert len(seen) == 2
    ChatEncoder(ChatOptions("m", tool_images=True)).encode(Request(messages))
    assert len(seen) == 4


# ---- where no user turn may follow a result


def test_the_tail_goes_into_the_last_result_where_no_user_turn_may_follow_it() -> None:
    body = sent(Request(history(), tail=Tail("Next?")), FOLDING)
    assert body["messages"][-1]["role"] == "tool"
    assert body["messages"][-1]["content"] == [{"type": "text", "text": "ok"}, {"type": "text", "text": "Next?"}]
    assert check_request(body, user_after_tool=False) is None


def test_a_stored_user_turn_after_a_result_goes_into_it() -> None:
    words = Message.user_message("Stop that.")
    messages = sent(Request([asked("c"), result("c"), words], tail=Tail("Next?")), FOLDING)["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool"]
    assert [part["text"] for part in messages[1]["content"]] == ["ok", "Stop that.", "Next?"]


def test_images_that_a_result_cannot_hold_follow_it_behind_a_word_of_the_assistant() -> None:
    body = encode(Request(history()[:6], tail=Tail("Next?", (Image.from_base64(PNG),))), FOLDING)
    messages = json.loads(body.data)["messages"]
    assert [message["role"] for message in messages] == [
        *("user", "assistant", "tool", "tool", "assistant", "user", "assistant", "user")
    ]
    assert [part["type"] for part in messages[5]["content"]] == ["text", "image_url"]
    assert check_request(json.loads(body.data), user_after_tool=False) is None
    assert body.notices == ()


def test_several_images_of_a_step_and_the_tail_are_one_turn() -> None:
    shown = [Message.user_message(f"Image {number}:", PNG) for number in (1, 2)]
    messages = sent(Request([asked("c"), result("c"), *shown], tail=Tail("Next?")), FOLDING)["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool", "assistant", "user"]
    assert [part["type"] for part in messages[3]["content"]] == ["text", "image_url", "text", "image_url", "text"]


def test_images_go_into_a_result_where_the_provider_takes_them() -> None:
    options = ChatOptions("m", fold_user_turns=True, tool_images=True)
    body = encode(Request(history()[:5]), options)
    assert json.loads(body.data)["messages"][-1]["content"][-1]["type"] == "image_url"
    assert body.notices == ()


def test_an_image_whose_data_is_gone_is_a_note() -> None:
    body = encode(Request([Message(role=Role.USER, content="x", images=(Image(hash="h", media_type="image/png"),))]))
    assert "no longer" in json.loads(body.data)["messages"][0]["content"][1]["text"]


def test_an_image_in_a_result_is_a_note_on_this_wire() -> None:
    body = encode(Request([asked("c"), result("c", "text", PNG)]))
    content = json.loads(body.data)["messages"][1]["content"]
    assert content.startswith("text\n")
    assert "left out" in content


# ---- provider parts


def test_reasoning_goes_back_to_providers_that_want_it_and_to_no_other() -> None:
    detail = {"type": "reasoning.encrypted", "data": "gAAA/+=", "index": 0}
    deepseek = Message(
        role=Role.ASSISTANT, content="a", thinking=(Thinking(text="t", opaque={"reasoning_content": "t"}),)
    )
    router = Message(role=Role.ASSISTANT, content="b", thinking=(Thinking(opaque={"reasoning_details": detail}),))
    messages = sent(Request([deepseek, router]))["messages"]
    assert messages[0]["reasoning_content"] == "t"
    assert messages[1]["reasoning_details"] == [detail]
    bare = sent(Request([deepseek, router]), ChatOptions("m", echo=frozenset()))["messages"]
    assert bare == [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]


def test_signatures_of_thoughts_go_back_on_message_and_call() -> None:
    opaque = {"extra_content": {"message": {"google": {"s": "A"}}, "calls": [{"google": {"s": "B"}}]}}
    message = replace(asked("c"), opaque=opaque)
    wire = sent(Request([message, result("c")]))["messages"][0]
    assert wire["extra_content"] == {"google": {"s": "A"}}
    assert wire["tool_calls"][0]["extra_content"] == {"google": {"s": "B"}}


# ---- a bad item in history never breaks later requests


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "  ",
        "{bad",
        '{"a": NaN}',
        "[1]",
        "7",
        '"x"',
        "[" * 3000,
        '{"a": ' + "9" * 5000,
        '{"a": "\ud800"}',
        '{"a": "cut o',
    ],
)
def test_arguments_that_are_no_object_are_sent_as_one(arguments: str) -> None:
    call = ToolCall(id="c", function=Function(name="f", arguments=arguments))
    body = sent(Request([Message.from_tool_calls([call]), result("c")]))
    assert check_request(body) is None


def test_good_arguments_are_sent_byte_for_byte() -> None:
    assert safe_arguments('{ "b":1,\n"a" : "é" }') == '{ "b":1,\n"a" : "é" }'


def test_names_and_ids_that_a_provider_refuses_are_made_fit_the_same_way_each_time() -> None:
    assert safe_name("") == "unnamed"
    assert safe_name("my tool!") == "my_tool_"
    assert len(safe_name("x" * 99)) == 64
    assert safe_id("call_1") == "call_1"
    assert len(safe_id("x" * 64)) == 40
    assert safe_id("abcDEF123", short=True) == "abcDEF123"
    assert len(safe_id("call_1", short=True)) == 9
    assert safe_id("call_1", short=True) == safe_id("call_1", short=True) != safe_id("call_2", short=True)


def test_lone_surrogates_anywhere_do_not_break_the_body() -> None:
    call = ToolCall(id="c", function=Function(name="f\ud800", arguments="{}"))
    messages = [Message.user_message("a\ud83d"), Message.from_tool_calls([call], "x"), result("c", "\udc00")]
    body = sent(Request(messages, "sys\ud800", (tool("a") | {"x": "\ud800"},), Tail("t\ud800")))
    assert check_request(body) is None


def test_without_system_and_messages_the_tail_alone_is_sent() -> None:
    for options in (ChatOptions("m"), FOLDING):
        assert len(sent(Request([], tail=Tail("t")), options)["messages"]) == 1
        assert sent(Request([]), options)["messages"] == []
