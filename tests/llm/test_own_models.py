"""What a user's own model may put into a reply, and memory stands it."""

from __future__ import annotations

from pydantic import TypeAdapter

from handwork.llm.chat.encoder import ChatEncoder
from handwork.llm.chat.messages import ChatOptions
from handwork.schema import Function, Message, Reply, Request, Thinking, ToolCall

LONE = "a\ud83d"
CLEAN = "a\ufffd"


def test_lone_surrogates_in_any_text_of_a_reply_are_replaced_where_they_come_in() -> None:
    call = ToolCall(id=LONE, function=Function(name=LONE, arguments=f'{{"x": "{LONE}"}}'))
    assert (call.id, call.function.name, call.function.arguments) == (CLEAN, CLEAN, f'{{"x": "{CLEAN}"}}')
    message = Reply(content=LONE, tool_calls=(call,), thinking=(Thinking(text=LONE),)).to_message()
    result = Message.tool_message("r", name=LONE, tool_call_id=LONE)
    assert result.tool_call_id == call.id
    for each in (message, result):
        adapter = TypeAdapter(Message)
        assert adapter.validate_json(adapter.dump_json(each)) == each
    body = ChatEncoder(ChatOptions("m")).encode(Request([Message.user_message("x"), message, result]))
    assert "\ufffd" in body.data.decode()


def test_honest_texts_are_the_same_objects_as_before() -> None:
    text = "Grüße 😀 " * 100
    assert Function(name="f", arguments=text).arguments is text
