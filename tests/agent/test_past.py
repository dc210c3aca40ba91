"""Whatever happens in a session, what is known live is what its journal says, and the agents' memory with it."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import Settings
from handwork.events import Event
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Action, Message, Role, ToolResult
from handwork.session import Session
from handwork.store.past import Past
from handwork.tool.ask_human import AskHuman
from handwork.tool.function import tool
from handwork.tool.terminate import Terminate

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HISTORIES = 60


@tool(actions=[Action(kind="read", resource="x", repeatable=True)])
async def look() -> ToolResult:
    """Look, and see a picture."""
    return ToolResult(output="seen", base64_image=PIXEL, details={"n": 1})


async def pay() -> str:
    """Pay, which takes a moment."""
    for _ in range(5):
        await asyncio.sleep(0)
    return "paid"


class History:
    """A random course of things on one session with two agents."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.random, self.settings = random.Random(seed), settings
        self.events: list[Event] = []
        self.session = Session.open(settings, listeners=[self.events.append])
        self.agents = [self._agent(), self._agent()]

    def _agent(self) -> ToolCallAgent:
        tools = [look, pay, AskHuman, Terminate]
        model = ScriptedModel(self._answer)
        return ToolCallAgent(
            settings=self.settings, session=self.session, llm=model, available_tools=tools, max_steps=3
        )

    def _answer(self, request: Any) -> Any:
        calls = [
            call("look"),
            call("pay"),
            call("nope"),
            call("ask_human", inquire="?"),
            call("terminate", status="success"),
        ]
        return self.random.choice(["text", *([self.random.choice(calls) for _ in range(n)] for n in (1, 2, 3))])

    async def step(self) -> None:
        agent = self.random.choice(self.agents)
        await getattr(self, f"_{self.random.choice(STEPS)}")(agent)

    async def _run(self, agent: ToolCallAgent) -> None:
        await agent.run(f"request {self.random.randrange(1000)}")

    async def _go_on(self, agent: ToolCallAgent) -> None:
        await agent.run()

    async def _stopped(self, agent: ToolCallAgent) -> None:
        run = asyncio.create_task(agent.run("to be stopped"))
        for _ in range(self.random.randrange(40)):
            await asyncio.sleep(0)
        self.random.choice([agent.cancel, run.cancel])()
        await asyncio.wait({run})

    async def _left(self, agent: ToolCallAgent) -> None:
        stream = agent.stream("to be left")
        for _ in range(self.random.randrange(12)):
            await anext(stream, None)
        await stream.aclose()

    async def _rewrite(self, agent: ToolCallAgent) -> None:
        agent.messages = [message for message in agent.messages if self.random.random() < 0.8]

    async def _append(self, agent: ToolCallAgent) -> None:
        agent.messages += [Message.user_message("by hand")]

    async def _reopen(self, agent: ToolCallAgent) -> None:
        past = self.session.past if self.random.random() < 0.5 else None
        await self.session.close()
        self.session = Session.open(self.settings, id=self.session.id, past=past, listeners=[self.events.append])
        for each in self.agents:
            each.session = self.session


STEPS = ["run", "run", "run", "go_on", "stopped", "left", "rewrite", "append", "reopen"]


async def anew(session: Session) -> Past:
    await session.gate()
    past = Past(session_id=session.id)
    for event in session._journal.replay():
        past.read(event, session._store.get_blob)
    return past


def assert_sendable(messages: Any) -> None:
    expected: list[str] = []
    for message in messages:
        if message.role is Role.TOOL:
            assert message.tool_call_id == expected.pop(0)
        else:
            assert not expected
            expected = [one.id for one in message.tool_calls]


@pytest.mark.parametrize("seed", range(HISTORIES))
async def test_what_is_known_live_is_what_the_journal_says(settings: Settings, seed: int) -> None:
    history = History(settings, seed)
    for _ in range(10):
        await history.step()
        assert await anew(history.session) == history.session.past
    for agent in history.agents:
        await agent.run("the end")
        assert agent.messages == history.session.past.messages
        for request in agent.llm.requests:
            assert_sendable(request.messages)
    started = [event.call.id for event in history.events if event.type == "tool_call_started"]
    finished = [event.call_id for event in history.events if event.type == "tool_call_finished"]
    assert sorted(started) == sorted(finished)
    await history.session.close()
