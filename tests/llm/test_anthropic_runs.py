"""Agents on Anthropic's wire, against a server that refuses whatever that API refuses: parallel calls, thinking, pictures, words
in between, and going on from the journal."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from handwork.agent.manus import Manus
from handwork.agent.swe import SWEAgent
from handwork.agent.toolcall import ToolCallAgent
from handwork.config import LLMSettings, Settings
from handwork.errors import ContentFilterError
from handwork.schema import Status, ToolResult
from handwork.session import Session
from handwork.tool.terminate import Terminate
from tests.agent.conftest import reopened
from tests.support.messages_server import MessagesServer, message_of
from tests.support.pictures import png_base64
from tests.support.strict_server import StrictServer, tool

MARK = b',"cache_control":{"type":"ephemeral"}'
THINKING = [None, 2048, "adaptive"]
PROMPT = "WHAT COMES NEXT?"


def settings_for(url: str, home: Path, thinking: Any = None) -> Settings:
    chosen = LLMSettings(model="anthropic:claude-test", base_url=url, api_key="key-123456", thinking=thinking)
    return Settings(llm={"default": chosen})


def blocks(request: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [block for message in request["messages"] for block in message["content"] if block["type"] == kind]


def working(steps: int) -> Any:
    """Two calls a step, then the answer."""

    def script(request: dict[str, Any]) -> Any:
        done = len(blocks(request, "tool_result"))
        if done >= 2 * steps:
            return "the answer"
        return ["I go on.", tool("bash", command=f"echo {done}"), tool("bash", command="cat nothing-there")]

    return script


class Desk:
    """Tools that draw, and during which somebody speaks to the agent."""

    def __init__(self) -> None:
        self.agent: ToolCallAgent | None = None

    async def draw(self, what: str) -> ToolResult:
        """Draw something."""
        return ToolResult(output=f"{what} drawn", base64_image=png_base64(len(what)))

    async def listen(self) -> str:
        """Hear what is said."""
        assert self.agent is not None
        self.agent.steer("use blue")
        return "heard"


def stored_part(body: bytes) -> bytes:
    """The history as sent, without marks, up to the tail (which the prompt stands for)."""
    history = body.partition(b'"messages":')[2].replace(MARK, b"")
    return history.partition(b',{"type":"text","text":"' + PROMPT.encode())[0]


@pytest.mark.parametrize("thinking", THINKING)
@pytest.mark.parametrize("role", [Manus, SWEAgent])
async def test_a_run_with_calls_side_by_side_is_taken_at_every_step_and_only_grows(
    role: type[ToolCallAgent], thinking: Any, tmp_path: Path, home: Path
) -> None:
    async with MessagesServer(working(8)) as server:
        settings = settings_for(server.url, home, thinking)
        agent = role(settings=settings, workspace=tmp_path, next_step_prompt=PROMPT, max_steps=12)
        result = await agent.run("work")
    assert server.refused == []
    assert (result.status, result.output, len(server.requests)) == (Status.FINISHED, "the answer", 9)
    assert result.usage.cached == 9 * 5
    for before, after in pairwise(server.bodies):
        assert after.partition(b'"messages":')[2].replace(MARK, b"").startswith(stored_part(before))
        assert before.partition(b'"messages":')[0] == after.partition(b'"messages":')[0]
    for body, request in zip(server.bodies, server.requests, strict=True):
        assert body.count(PROMPT.encode()) == 1
        assert len(blocks(request, "thinking")) == (len(request["messages"]) // 2 if thinking else 0)


def marked(request: dict[str, Any]) -> list[tuple[int, int]]:
    """Where in the messages the marks are: (message, block)."""
    places = [
        (at, place) for at, message in enumerate(request["messages"]) for place, _ in enumerate(message["content"])
    ]
    return [(at, place) for at, place in places if "cache_control" in request["messages"][at]["content"][place]]


@pytest.mark.parametrize("thinking", [None, "adaptive"])
async def test_each_request_reads_from_the_cache_where_the_one_before_it_wrote(
    thinking: Any, tmp_path: Path, home: Path
) -> None:
    async with MessagesServer(working(4)) as server:
        agent = SWEAgent(settings=settings_for(server.url, home, thinking), workspace=tmp_path, next_step_prompt=PROMPT)
        await agent.run("work")
    for before, after in pairwise(server.requests):
        written, read = marked(before)[-1], marked(after)[-2]
        assert written == read
        at, place = read
        for one, two in zip(
            before["messages"][at]["content"][: place + 1], after["messages"][at]["content"], strict=False
        ):
            assert one == two


@pytest.mark.parametrize("thinking", THINKING)
async def test_pictures_stand_in_their_results_and_words_in_between_are_read(
    thinking: Any, tmp_path: Path, home: Path
) -> None:
    desk = Desk()
    script: list[Any] = [
        [tool("draw", what="a"), tool("listen"), tool("draw", what="bcd")],
        tool("draw", what="e"),
        "done",
    ]
    async with MessagesServer(script) as server:
        agent = ToolCallAgent(
            settings=settings_for(server.url, home, thinking),
            workspace=tmp_path,
            available_tools=[desk.draw, desk.listen, Terminate],
        )
        desk.agent = agent
        result = await agent.run("go")
    assert (result.status, server.refused) == (Status.FINISHED, [])
    first, heard, second = blocks(server.requests[1], "tool_result")
    assert [part["type"] for part in first["content"]] == ["text", "text", "image"]
    assert second["content"][2]["source"]["data"] != first["content"][2]["source"]["data"]
    turn = server.requests[1]["messages"][2]["content"]
    if thinking:
        assert second["content"][-1]["text"] == "use blue"
    else:
        assert (turn[3]["text"], len(heard["content"])) == ("use blue", 1)


@pytest.mark.parametrize("thinking", THINKING)
async def test_a_session_goes_on_from_the_journal_with_the_same_bytes(
    thinking: Any, tmp_path: Path, home: Path
) -> None:
    desk = Desk()
    script: list[Any] = [tool("draw", what="a"), "First.", [tool("draw", what="b"), tool("draw", what="c")], "Second."]
    async with MessagesServer(script) as server:
        settings = settings_for(server.url, home, thinking)
        async with Session.open(settings, tmp_path) as session:
            agent = ToolCallAgent(settings=settings, session=session, available_tools=[desk.draw, Terminate])
            await agent.run("one")
        async with reopened(session) as again:
            agent = ToolCallAgent(settings=settings, session=again, available_tools=[desk.draw, Terminate])
            result = await agent.run("two")
    assert (result.output, server.refused) == ("Second.", [])
    histories = [body.partition(b'"messages":')[2].replace(MARK, b"") for body in server.bodies]
    answered = histories[1][: histories[1].rindex(b"]")].removesuffix(b"]}").removesuffix(b"]}")
    assert histories[2].startswith(answered)
    if thinking:
        assert len(blocks(server.requests[3], "thinking")) == 3


async def test_a_run_that_was_cut_off_between_calls_goes_on_with_thinking(tmp_path: Path, home: Path) -> None:
    entered = asyncio.Event()

    async def stay() -> str:
        """Take long, the first time."""
        if not entered.is_set():
            entered.set()
            await asyncio.Event().wait()
        return "stayed"

    async with MessagesServer([[tool("stay"), tool("stay")], "went on"]) as server:
        settings = settings_for(server.url, home, 1024)
        async with Session.open(settings, tmp_path) as session:
            agent = ToolCallAgent(settings=settings, session=session, available_tools=[stay, Terminate])
            task = asyncio.create_task(agent.run("go"))
            await entered.wait()
            agent.cancel()
            assert (await task).status is Status.CANCELLED
        async with reopened(session) as again:
            agent = ToolCallAgent(settings=settings, session=again, available_tools=[stay, Terminate])
            result = await agent.run("and now?")
    assert (result.output, server.refused) == ("went on", [])
    assert len(blocks(server.requests[1], "tool_result")) == 2


@pytest.mark.parametrize("thinking", THINKING)
async def test_a_conversation_moves_between_providers_in_both_directions(
    thinking: Any, tmp_path: Path, home: Path
) -> None:
    desk = Desk()
    chat: list[Any] = [
        {"content": "r", "reasoning_content": "secret thoughts", "tool_calls": [tool("draw", what="x")]},
        "Chat.",
    ]
    async with StrictServer(chat) as other, MessagesServer([tool("draw", what="a"), "First.", "Third."]) as server:
        elsewhere = Settings(llm={"default": LLMSettings(model="deepseek:m", base_url=other.url)})
        own = settings_for(server.url, home, thinking)
        async with Session.open(own, tmp_path) as session:
            for settings, request in ((own, "one"), (elsewhere, "two"), (own, "three")):
                agent = ToolCallAgent(settings=settings, session=session, available_tools=[desk.draw, Terminate])
                result = await agent.run(request)
                assert result.status is Status.FINISHED
    assert (server.refused, other.refused) == ([], [])
    assert "secret thoughts" not in json.dumps(server.requests)
    assert "Sig/" not in json.dumps(other.requests)


async def test_blocks_of_a_servers_own_tools_are_kept_in_their_places(tmp_path: Path, home: Path) -> None:
    content: list[dict[str, Any]] = [
        {"type": "text", "text": "I search."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "server_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"encrypted": "a/+="}]},
        {"type": "tool_use", "id": "toolu_9", "name": "draw", "input": {"what": "x"}},
    ]
    async with MessagesServer([message_of(content, "tool_use"), "done"]) as server:
        agent = ToolCallAgent(
            settings=settings_for(server.url, home), workspace=tmp_path, available_tools=[Desk().draw, Terminate]
        )
        result = await agent.run("go")
    assert (result.status, server.refused) == (Status.FINISHED, [])
    assert server.requests[1]["messages"][1]["content"] == content


async def test_an_answer_that_was_cut_off_goes_on_and_a_refusal_ends_the_run(tmp_path: Path, home: Path) -> None:
    cut = message_of([{"type": "text", "text": "The ans"}], "max_tokens")
    refusal = message_of([], "refusal", stop_details={"explanation": "not this"})
    async with MessagesServer([cut, "The answer.", refusal]) as server:
        agent = ToolCallAgent(
            settings=settings_for(server.url, home, "high"), workspace=tmp_path, available_tools=[Terminate]
        )
        assert (await agent.run("go")).output == "The answer."
        result = await agent.run("and this?")
    assert (result.status, type(result.error)) == (Status.ERROR, ContentFilterError)
    assert "not this" in str(result.error)
    assert server.refused == []
