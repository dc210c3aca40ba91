"""The scripted model: every form of a line, and what it records."""

from __future__ import annotations

import pytest

from handwork.errors import BrokenStreamError, RateLimitError, ScriptExhausted
from handwork.llm.asking import reply_of
from handwork.llm.base import Model
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Function, Message, Reply, Request, StreamItem, TextDelta, Thinking, ToolCall


def ask(*texts: str) -> Request:
    return Request([Message.user_message(text) for text in texts])


async def test_a_text_is_streamed_in_a_few_deltas_and_is_the_reply() -> None:
    items = [item async for item in ScriptedModel(["one two three four"]).stream(ask("x"))]
    deltas = [item.text for item in items if isinstance(item, TextDelta)]
    assert "".join(deltas) == "one two three four"
    assert len(deltas) > 1
    assert items[-1] == Reply(content="one two three four")


async def test_a_call_and_a_list_of_calls_are_tool_calls_with_unique_ids() -> None:
    same = call("bash", command="ls")
    model = ScriptedModel([same, [same, same], [call("a"), call("b", x=1)]])
    replies = [await reply_of(model, ask("x")) for _ in range(3)]
    ids = [made.id for reply in replies for made in reply.tool_calls]
    assert len(set(ids)) == len(ids) == 5
    assert replies[0].tool_calls[0].function == Function(name="bash", arguments='{"command": "ls"}')
    assert [reply.finish_reason for reply in replies] == ["tool_calls"] * 3


async def test_a_reply_is_played_as_it_is() -> None:
    twice = ToolCall(id="same", function=Function(name="f"))
    reply = Reply(content="c", tool_calls=(twice, twice), thinking=(Thinking(text="t"),), finish_reason="length")
    assert await reply_of(ScriptedModel([reply]), ask("x")) is reply


async def test_a_list_of_items_is_played_as_it_is() -> None:
    items: list[StreamItem] = [TextDelta("a")]
    with pytest.raises(BrokenStreamError):
        await reply_of(ScriptedModel([items]), ask("x"))


async def test_an_exception_is_raised() -> None:
    with pytest.raises(RateLimitError, match="slow"):
        await reply_of(ScriptedModel([RateLimitError("slow")]), ask("x"))


async def test_functions_of_the_request_may_stand_for_a_line_or_for_the_whole_script() -> None:
    async def later(request: Request) -> str:
        return f"{len(request.messages)} messages"

    assert (await reply_of(ScriptedModel([later]), ask("x", "y"))).content == "2 messages"
    model = ScriptedModel(lambda request: request.messages[-1].content or "")
    assert [(await reply_of(model, ask(text))).content for text in "ab"] == ["a", "b"]


async def test_requests_are_recorded_as_they_were() -> None:
    messages = [Message.user_message("x")]
    model = ScriptedModel(["a", "b"])
    await reply_of(model, Request(messages))
    messages.append(Message.user_message("y"))
    await reply_of(model, Request(messages))
    assert [len(request.messages) for request in model.requests] == [1, 2]


async def test_a_spent_script_says_so() -> None:
    model = ScriptedModel(["a"])
    await reply_of(model, ask("x"))
    assert model.remaining == 0
    with pytest.raises(ScriptExhausted, match="1 answers and was asked for number 2"):
        await reply_of(model, ask("x"))


def test_it_is_a_model() -> None:
    assert isinstance(ScriptedModel([]), Model)
