"""Local models that answer in text instead of calls: the run goes on as if they had called (CONTRACT E10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import LLMSettings, Settings
from handwork.errors import ServerError
from handwork.llm.llm import LLM
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Message, Reply, Retrying, Role, Status, TextDelta, ToolArgsDelta
from handwork.tool.function import tool
from handwork.tool.terminate import Terminate
from tests.agent.conftest import Seen
from tests.support.strict_server import StrictServer


@tool(actions=[])
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent_of(settings: Settings, script: Any, **fields: Any) -> ToolCallAgent:
    fields.setdefault("llm", ScriptedModel(script))
    return ToolCallAgent(settings=settings, available_tools=[add, Terminate], **fields)


async def test_a_call_written_as_text_is_run_and_said(settings: Settings, seen: Seen) -> None:
    text = '```json\n{"name": "add", "arguments": {"a": 40, "b": 2}}\n```'
    agent = agent_of(settings, [text, text, "42"])
    result = await agent.run("go", listener=seen)
    assert (result.status, result.output) == (Status.FINISHED, "42")
    results = [m for m in agent.messages if m.role is Role.TOOL]
    assert [m.content for m in results] == ["Observed output of cmd `add` executed:\n42"] * 2
    assert len({m.tool_call_id for m in results}) == 2
    told = [event.text for event in seen.of("notice")]
    assert told == ["The model wrote a call as text; it is read as that call: add"] * 2
    assert "".join(event.text for event in seen.of("text_delta")) == "42"
    assert not seen.of("reply_discarded")


async def test_what_was_shown_before_a_call_is_taken_back(settings: Settings, seen: Seen) -> None:
    agent = agent_of(settings, ['<think>Sum.</think>{"name": "add", "arguments": {"a": 1, "b": 2}}', "3"])
    assert (await agent.run("go", listener=seen)).output == "3"
    kinds = seen.types()
    assert kinds.index("text_delta") < kinds.index("reply_discarded") < kinds.index("tool_call_started")


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "add"}',
        "```json\n[1, 2]\n```",
        "[a link](x) and more",
        "  \n",
        "[",
        "{",
        "`x`",
        "<b>bold</b>",
        "x" * 60_000,
        "{" * 60_000,
    ],
)
async def test_an_answer_that_only_began_like_a_call_is_shown_whole_and_in_order(
    settings: Settings, seen: Seen, answer: str
) -> None:
    pieces = [TextDelta(answer[at : at + 7]) for at in range(0, len(answer), 7)]
    agent = agent_of(settings, [[*pieces, Reply(content=answer)], "end"], max_steps=1)
    await agent.run("go", listener=seen)
    assert "".join(event.text for event in seen.of("text_delta")) == answer


async def test_a_sentence_is_shown_as_it_comes_and_a_call_that_is_begun_is_not(settings: Settings, seen: Seen) -> None:
    shown: list[list[str]] = []

    async def slowly(request: Any) -> Any:
        return [TextDelta("Hel"), TextDelta("lo"), Reply(content="Hello")]

    agent = agent_of(settings, [slowly])
    await agent.run("go", listener=lambda event: shown.append([event.text]) if event.type == "text_delta" else None)
    assert shown == [["Hel"], ["lo"]]


async def test_an_answer_in_json_is_shown_as_it_comes(settings: Settings) -> None:
    pieces = ["```json\n", '{"ans', 'wer": ', "42}\n", "```"]
    shown: list[str] = []

    async def slowly(request: Any) -> Any:
        return [*map(TextDelta, pieces), Retrying(ServerError("down"), 0.0, 1), Reply(content="".join(pieces))]

    agent = agent_of(settings, [slowly])
    await agent.run("go", listener=lambda event: shown.append(getattr(event, "text", event.type)))
    at = shown.index("retry_scheduled")
    assert shown[at - len(pieces) : at] == pieces


async def test_text_before_a_real_call_is_shown_before_its_arguments(settings: Settings, seen: Seen) -> None:
    made = call("add", a=1, b=2)
    pieces = [TextDelta("{"), ToolArgsDelta(0, made.id, "add", made.function.arguments)]
    agent = agent_of(settings, [[*pieces, Reply(content="{", tool_calls=(made,))], "3"])
    await agent.run("go", listener=seen)
    assert seen.of("text_delta", "tool_args_delta")[0].text == "{"


async def test_bad_arguments_of_a_written_call_are_told_like_those_of_any(settings: Settings) -> None:
    agent = agent_of(settings, ['<tool_call>{"name": "add", "arguments": {"a": "x"}}</tool_call>', "sorry"])
    await agent.run("go")
    [result] = [m for m in agent.messages if m.role is Role.TOOL]
    assert "Invalid arguments for add" in (result.content or "")
    assert result.is_error


async def test_an_answer_in_json_stays_an_answer(settings: Settings) -> None:
    answer = '{"name": "add", "version": 2}'
    result = await agent_of(settings, [answer]).run("Which tool would you take? Answer in JSON.")
    assert (result.status, result.output) == (Status.FINISHED, answer)


async def test_an_agent_that_may_not_call_gets_its_text(settings: Settings) -> None:
    text = '{"name": "add", "arguments": {"a": 40, "b": 2}}'
    result = await agent_of(settings, [text], tool_choices="none").run("go")
    assert result.output == text


async def test_the_next_request_is_valid_and_ask_tool_reads_them_too(settings: Settings, tmp_path: Path) -> None:
    text = '<think>Sum.</think><tool_call>{"name": "add", "arguments": {"a": 40, "b": 2}}</tool_call>'
    async with StrictServer([text, "42", text]) as server:
        wired = settings.model_copy(update={"llm": {"default": LLMSettings(model="m", base_url=server.url)}})
        agent = agent_of(wired, [], llm=None, workspace=tmp_path)
        assert (await agent.run("go")).output == "42"
        llm = LLM("default", wired)
        reply = await llm.ask_tool([Message.user_message("go")], tools=agent.available_tools.to_params())
        await llm.aclose()
        assert server.refused == []
    assert [call.function.name for call in reply.tool_calls] == ["add"]
    assert reply.content is None
