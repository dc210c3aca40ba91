"""Steering: what is said to an agent while it works."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from handwork import events as ev
from handwork.agent.base import BaseAgent
from handwork.agent.toolcall import ToolCallAgent
from handwork.config import Settings
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import AgentState, Memory, Message, Reply, Role, Status, ToolCall
from handwork.session import Session
from handwork.tool.terminate import Terminate
from tests.agent.conftest import Seen, reopened
from tests.support.strict_server import StrictServer, tool


class Desk:
    """A tool during whose call somebody speaks to the agent."""

    def __init__(self, *said: str) -> None:
        self.said, self.agent = said, None

    async def look(self, what: str) -> str:
        """Look at something."""
        for text in self.said:
            self.agent.steer(text)
        self.said = ()
        return f"{what} seen"


def agent_of(settings: Settings, script: Any, desk: Desk, **fields: Any) -> Any:
    if script is not None:
        fields["llm"] = ScriptedModel(script)
    agent = ToolCallAgent(settings=settings, available_tools=[desk.look, Terminate], **fields)
    desk.agent = agent
    return agent


def roles(messages: Any) -> str:
    return " ".join(message.role.value for message in messages)


def said(agent: BaseAgent) -> list[str]:
    return [message.content or "" for message in agent.messages if message.role is Role.USER]


async def test_what_is_said_during_a_call_is_read_after_its_results_at_the_next_step(settings: Settings) -> None:
    desk = Desk("look at b, too", "and hurry")
    agent = agent_of(settings, [[call("look", what="a"), call("look", what="c")], "done"], desk)
    result = await agent.run("go")
    assert (result.status, result.output) == (Status.FINISHED, "done")
    assert roles(agent.llm.requests[1].messages) == "user assistant tool tool user user"
    assert said(agent) == ["go", "look at b, too", "and hurry"]
    assert agent.unread() == []


async def test_words_are_journaled_like_any_other_message(settings: Settings, seen: Seen) -> None:
    desk = Desk("stop at b")
    async with Session.open(settings) as session:
        agent = agent_of(settings, [call("look", what="a"), "done"], desk, session=session)
        await agent.run("go", listener=seen)
    kinds = [event.type for event in seen.of("step_started", "message_added")]
    assert kinds == ["message_added", "step_started", *["message_added"] * 2, "step_started", *["message_added"] * 2]
    async with reopened(session) as again:
        assert [m.content for m in again.past.messages if m.role is Role.USER] == ["go", "stop at b"]


async def test_empty_words_are_ignored_and_lone_surrogates_do_no_harm(settings: Settings) -> None:
    desk = Desk("", "  \n", "a\ud800b")
    agent = agent_of(settings, [call("look", what="a"), "done"], desk)
    assert (await agent.run("go")).status is Status.FINISHED
    [word] = said(agent)[1:]
    word.encode()
    agent.steer("a\ud800b")
    assert agent.unread() == [word]


async def test_while_no_run_goes_on_words_wait_for_the_next_ones_first_step(settings: Settings) -> None:
    agent = agent_of(settings, ["hello", "bye"], Desk())
    agent.steer("in French, please")
    await agent.run("greet me")
    assert said(agent) == ["greet me", "in French, please"]
    agent.steer("and now?")
    assert (await agent.run()).output == "bye"
    assert said(agent)[-1] == "and now?"


async def test_an_answer_in_text_does_not_end_the_run_while_words_wait(settings: Settings) -> None:
    def answer(request: Any) -> Any:
        if len(request.messages) == 1:
            agent.steer("also count b")
            return "a is 1"
        return "b is 2"

    agent = agent_of(settings, answer, Desk())
    result = await agent.run("count a")
    assert (result.status, result.output) == (Status.FINISHED, "b is 2")
    assert roles(agent.messages) == "user assistant user assistant"


async def test_an_answer_on_the_last_step_is_a_finish_and_the_words_are_handed_over(settings: Settings) -> None:
    def answer(request: Any) -> Any:
        agent.steer("also count b")
        return "a is 1"

    agent = agent_of(settings, answer, Desk(), max_steps=1)
    assert (await agent.run("count a")).status is Status.FINISHED
    assert agent.unread() == ["also count b"]
    assert agent.unread() == []


async def test_terminate_ends_the_run_at_once_and_the_words_are_handed_over(settings: Settings) -> None:
    desk = Desk("wait, b too")
    agent = agent_of(settings, [[call("look", what="a"), call("terminate", status="success")]], desk)
    assert (await agent.run("go")).status is Status.FINISHED
    assert agent.unread() == ["wait, b too"]


@pytest.mark.parametrize("end", ["cancelled", "error", "max_steps"])
async def test_however_a_run_ends_unread_words_are_kept(settings: Settings, end: str) -> None:
    entered = asyncio.Event()

    async def answer(request: Any) -> Any:
        agent.steer("one")
        agent.steer("two")
        entered.set()
        if end == "cancelled":
            await asyncio.Event().wait()
        return RuntimeError("no") if end == "error" else call("look", what="a")

    agent = agent_of(settings, answer, Desk(), max_steps=1)
    run = asyncio.create_task(agent.run("go"))
    await entered.wait()
    if end == "cancelled":
        agent.cancel()
    assert (await run).status.value == end
    assert agent.unread() == ["one", "two"]


async def test_words_that_were_not_taken_back_are_read_by_the_next_run(settings: Settings) -> None:
    desk = Desk("wait, b too")
    script = [[call("look", what="a"), call("terminate", status="success")], "b seen"]
    agent = agent_of(settings, script, desk)
    await agent.run("go")
    await agent.run()
    assert said(agent) == ["go", "wait, b too"]


@pytest.mark.parametrize("said_at", [4, 5])
async def test_words_give_a_stuck_run_a_new_chance(settings: Settings, said_at: int) -> None:
    """Five equal steps would end the run; words before that start the count anew."""
    steps = 0

    def answer(request: Any) -> Any:
        nonlocal steps
        steps += 1
        if steps == said_at:
            agent.steer("try something else")
        if steps == 8:
            return "found another way"
        return call("look", what="a")

    agent = agent_of(settings, answer, Desk())
    assert (await agent.run("go")).output == "found another way"


async def test_without_words_the_same_run_is_stuck(settings: Settings) -> None:
    agent = agent_of(settings, lambda request: call("look", what="a"), Desk())
    assert (await agent.run("go")).status is Status.STUCK


async def test_empty_replies_do_not_end_a_run_while_words_wait(settings: Settings) -> None:
    def answer(request: Any) -> Any:
        if len(agent.llm.requests) == 3:
            agent.steer("say something")
        return Reply() if len(agent.llm.requests) < 6 else "here I am"

    agent = agent_of(settings, answer, Desk())
    assert (await agent.run("go")).output == "here I am"


class Own(BaseAgent):
    """A user's own agent: only step()."""

    name = "own"
    heard: Any = ()

    async def step(self) -> str:
        self.heard = [*self.heard, said(self)[-1]]
        if self.current_step == 1:
            self.steer("word")
        if self.current_step == 2:
            self.state = AgentState.FINISHED
        return "x"


async def test_a_users_own_agent_can_be_steered_and_ends_when_it_says_so(settings: Settings) -> None:
    agent = Own(settings=settings)
    assert (await agent.run("go")).status is Status.FINISHED
    assert agent.heard == ["go", "word"]


def turn(id: str) -> Message:
    return Message.from_tool_calls([ToolCall(id=id, function=call("look").function)])


@pytest.mark.parametrize("before", [[], [turn("0"), Message.assistant_message("never mind")]], ids=["", "unanswered"])
async def test_words_never_stand_between_a_call_and_its_result(settings: Settings, before: list[Message]) -> None:
    class TwoSteps(BaseAgent):
        async def step(self) -> str:
            if self.current_step == 1:
                self.memory.add_message(turn("1"))
                self.steer("word")
            elif self.current_step == 2:
                self.memory.add_message(Message.tool_message("seen", "look", "1"))
            else:
                self.state = AgentState.FINISHED
            return "x"

    agent = TwoSteps(settings=settings, memory=Memory(before))
    await agent.run("go")
    assert roles(agent.messages[len(before) :]) == "user assistant tool user"


async def test_words_are_on_disk_before_the_request_that_holds_them(settings: Settings) -> None:
    on_disk: list[list[str | None]] = []

    def answer(request: Any) -> Any:
        if len(request.messages) == 1:
            agent.steer("word")
            return "text"
        with closing(sqlite3.connect(settings.store_path)) as db:
            rows = [ev.read_event(data) for (data,) in db.execute("select data from events order by seq")]
        on_disk.append([event.message.content for event in rows if isinstance(event, ev.MessageAdded)])
        return "done"

    agent = agent_of(settings, answer, Desk())
    await agent.run("go")
    assert on_disk == [["go", "text", "word"]]


async def test_words_come_behind_the_results_that_settling_gives(settings: Settings) -> None:
    entered = asyncio.Event()

    async def wait() -> str:
        """Wait for ever."""
        entered.set()
        await asyncio.Event().wait()
        return ""

    agent = ToolCallAgent(
        settings=settings, llm=ScriptedModel([[call("wait"), call("wait")], "done"]), available_tools=[wait]
    )
    run = asyncio.create_task(agent.run("go"))
    await entered.wait()
    agent.steer("leave it")
    agent.cancel()
    assert (await run).status is Status.CANCELLED
    waited = asyncio.create_task(agent.run())
    entered.clear()
    await entered.wait()  # the second call had never begun
    agent.cancel()
    await waited
    assert said(agent) == ["go"]
    assert (await agent.run()).output == "done"
    assert roles(agent.messages) == "user assistant tool tool user assistant"


@pytest.mark.parametrize("user_after_tool", [True, False])
async def test_the_request_with_words_is_valid_on_the_wire_that_folds_them_and_on_the_one_that_does_not(
    settings: Settings, user_after_tool: bool
) -> None:
    def script(request: dict[str, Any]) -> Any:
        return "done" if len(request["messages"]) > 2 else tool("look", what="a")

    async with StrictServer(script, user_after_tool=user_after_tool) as server:
        table = {"model": "any" if user_after_tool else "mistral-large-latest", "base_url": server.url, "api_key": "k"}
        settings = Settings(llm={"default": {**settings.llm["default"].model_dump(), **table}}, home=settings.home)
        desk = Desk("look at b, too")
        agent = agent_of(settings, None, desk)
        assert (await agent.run("go")).status is Status.FINISHED
        assert server.refused == []
        assert "look at b, too" in str(server.requests[1]["messages"])
