"""What several runs, agents and listeners have in common: a session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import Settings
from handwork.errors import SessionBusy
from handwork.events import Event, MessageAdded, ToolCallFinished, ToolCallStarted
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Approval, Image, Message, Reply, Role, Status, TextDelta
from handwork.session import Session
from handwork.tool.base import Tool
from handwork.tool.terminate import Terminate
from tests.agent.conftest import Seen, reopened


def agent_of(settings: Settings, script: Any, *tools: Any, **fields: Any) -> ToolCallAgent:
    return ToolCallAgent(settings=settings, llm=ScriptedModel(script), available_tools=[*tools, Terminate], **fields)


def said(messages: list[Message]) -> list[str | None]:
    return [message.content for message in messages]


async def test_agents_in_turn_on_one_session_share_its_conversation(settings: Settings) -> None:
    async with Session.open(settings) as session:
        first = agent_of(settings, ["one!", "three!"], session=session)
        second = agent_of(settings, ["two!"], session=session)
        await first.run("one")
        await second.run("two")
        await first.run("three")
    assert said(first.messages) == ["one", "one!", "two", "two!", "three", "three!"]
    async with reopened(session) as again:
        assert said(again.past.messages) == said(first.messages)


async def test_memory_that_was_given_stands_behind_what_the_session_holds(settings: Settings) -> None:
    async with Session.open(settings) as session:
        await agent_of(settings, ["one!"], session=session).run("one")
        agent = agent_of(settings, ["two!"], session=session)
        agent.messages = [Message.user_message("given")]
        await agent.run("two")
        assert said(agent.messages) == ["one", "one!", "given", "two", "two!"]
    async with reopened(session) as again:
        assert said(again.past.messages) == said(agent.messages)


async def test_an_agent_that_moves_to_another_session_takes_its_memory_along(settings: Settings) -> None:
    agent = agent_of(settings, ["one!", "two!"])
    await agent.run("one")
    async with Session.open(settings) as other:
        agent.session = other
        await agent.run("two")
    async with reopened(other) as again:
        assert said(again.past.messages) == ["one", "one!", "two", "two!"]


async def test_a_second_run_at_once_on_one_session_is_refused(settings: Settings) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait."""
        entered.set()
        await leave.wait()
        return "done"

    async with Session.open(settings) as session:
        first = agent_of(settings, [call("wait"), "ok"], wait, session=session)
        second = agent_of(settings, ["never"], session=session)
        run = asyncio.create_task(first.run("one"))
        await entered.wait()
        refused = await second.run("two")
        leave.set()
        assert (await run).output == "ok"
    assert isinstance(refused.error, SessionBusy)
    assert second.llm.requests == []


async def test_a_session_that_cannot_be_opened_is_a_result_with_that_error(settings: Settings) -> None:
    async with Session.open(settings, id="mine"):
        agent = agent_of(settings, ["never"])
        agent._session_id = "mine"
        result = await agent.run("go")
    assert (result.status, type(result.error)) == (Status.ERROR, SessionBusy)
    agent.reset()


async def test_an_agent_cannot_be_reset_or_run_inside_its_own_run(settings: Settings) -> None:
    refusals = []

    async def again() -> str:
        """Run inside the run."""
        for attempt in (agent.reset, lambda: agent.run("inner")):
            try:
                if asyncio.iscoroutine(waiting := attempt()):
                    await waiting
            except RuntimeError as error:
                refusals.append(str(error))
        return "refused"

    agent = agent_of(settings, [call("again"), "ok"], again)
    assert (await agent.run("go")).output == "ok"
    assert refusals == ["Cannot reset agent in state: RUNNING", "Cannot run agent from state: RUNNING"]


# ---- listeners


async def test_a_listener_that_hangs_holds_up_neither_the_run_nor_its_end(settings: Settings) -> None:
    async def hangs(event: Event) -> None:
        await asyncio.Event().wait()

    assert (await agent_of(settings, ["ok"]).run("go", listener=hangs)).output == "ok"


async def test_a_slow_listener_gets_all_that_matters_and_merged_deltas(settings: Settings) -> None:
    seen = Seen()

    async def slow(event: Event) -> None:
        await asyncio.sleep(0)
        seen(event)

    reply = [*(TextDelta("ab ") for _ in range(600)), Reply(content="ab " * 600)]
    await agent_of(settings, [reply]).run("go", listener=slow)
    deltas = seen.of("text_delta")
    assert "".join(delta.text for delta in deltas) == "ab " * 600
    assert len(deltas) < 600
    assert seen.types()[-1] == "run_finished"
    assert [event.seq for event in seen if event.seq] == list(range(1, seen[-1].seq + 1))


async def test_events_that_a_listener_causes_come_after_the_one_that_it_was_told(settings: Settings) -> None:
    def failing(event: Event) -> None:
        raise RuntimeError("listener")

    seen = Seen()
    async with Session.open(settings, listeners=[failing, seen]) as session:
        await agent_of(settings, ["ok"], session=session).run("go")
    numbers = [event.seq for event in seen if event.seq]
    assert numbers == sorted(numbers)
    assert seen.types()[:2] == ["run_started", "notice"]


async def test_a_listener_that_raises_cancelled_error_is_dropped_like_any_other(settings: Settings, seen: Seen) -> None:
    async def odd(event: Event) -> None:
        raise asyncio.CancelledError

    async with Session.open(settings, listeners=[odd, seen]) as session:
        assert (await agent_of(settings, ["ok"], session=session).run("go")).output == "ok"
    assert len(seen.of("notice")) == 1


async def test_a_stream_that_was_left_a_moment_ago_does_not_stand_in_the_way(settings: Settings) -> None:
    agent = agent_of(settings, lambda request: call("nope"), max_steps=50)
    async for event in agent.stream("go"):
        if event.type == "step_started":
            break
    agent.llm = ScriptedModel(["ok"])
    assert (await agent.run("again")).output == "ok"


# ---- closing


async def test_cancelling_the_close_does_not_stop_it(settings: Settings) -> None:
    closed, entered, leave = [], asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        entered.set()
        await leave.wait()
        closed.append("slow")

    async def other() -> None:
        closed.append("other")

    session = Session.open(settings)
    session.on_close(other)
    session.on_close(slow)
    closing = asyncio.create_task(session.close())
    await entered.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    leave.set()
    await session.close()
    assert closed == ["slow", "other"]


async def test_an_error_in_one_part_hides_neither_another_part_nor_the_result(settings: Settings) -> None:
    closed = []

    class Part(Tool):
        async def execute(self) -> None:
            """Do nothing."""

        async def cleanup(self) -> None:
            closed.append(self.name)
            if self.name != "last":
                raise [OSError("disk"), asyncio.CancelledError()][len(closed) - 1]

    tools = [Part(name="first"), Part(name="second"), Part(name="last")]
    assert (await agent_of(settings, ["ok"], *tools).run("go")).output == "ok"
    assert closed == ["first", "second", "last"]


async def test_a_tool_that_came_during_the_run_is_cleaned_up_too(settings: Settings) -> None:
    cleaned = []

    class Late(Tool):
        name = "late"

        async def execute(self) -> str:
            return "late"

        async def cleanup(self) -> None:
            cleaned.append("late")

    async def bring() -> str:
        """Bring the other tool."""
        agent.available_tools.add_tool(Late)
        return "brought"

    agent = agent_of(settings, [call("bring"), call("late"), "ok"], bring)
    await agent.run("go")
    assert cleaned == ["late"]


async def test_one_allowance_for_the_session_holds_for_equal_calls_of_the_same_reply(settings: Settings) -> None:
    asked = []

    async def approve(request: Any) -> Approval:
        asked.append(request.id)
        return Approval(decision="allow_session")

    async def work() -> str:
        """Work."""
        return "done"

    settings = settings.model_copy(update={"policy": settings.policy.model_copy(update={"approve": "ask"})})
    agent = agent_of(settings, [[call("work"), call("work"), call("work")], "ok"], work, approve=approve)
    await agent.run("go")
    assert len(asked) == 1
    assert sum("done" in (m.content or "") for m in agent.messages if m.role is Role.TOOL) == 3


async def test_fields_that_are_set_later_are_understood_as_at_construction(settings: Settings) -> None:
    async def hello() -> str:
        """Say hello."""
        return "hello"

    agent = ToolCallAgent(settings=settings, llm=ScriptedModel([call("hello"), "ok", "plain"]))
    agent.available_tools = [hello]
    assert "hello" in str(await agent.run("go"))
    agent.tool_choices = "none"
    assert (await agent.run("go")).output == "plain"
    with pytest.raises(ValueError, match="Invalid tool_choice: perhaps"):
        agent.tool_choices = "perhaps"


async def test_a_model_in_the_class_is_the_one_that_is_asked(settings: Settings) -> None:
    model = ScriptedModel(["ok"])

    class Mine(ToolCallAgent):
        llm = model

    await Mine(settings=settings).run("go")
    assert len(model.requests) == 1


async def test_a_picture_survives_a_crash_between_its_call_and_its_message(settings: Settings) -> None:
    made = call("draw")
    image = Image.from_base64("iVBORw0KGgoAAAA=")
    async with Session.open(settings) as session:
        session.keep_images([image])
        session.emit(MessageAdded(message=Message.from_tool_calls([made])))
        session.emit(ToolCallStarted(call=made, actions=()))
        session.emit(ToolCallFinished(call_id=made.id, observation="drawn", images=(image,)))
    async with reopened(session) as again:
        record = again.past.record_of(made)
        assert record is not None
        assert record.outcome is not None
        assert record.outcome.images[0].data == image.data
