"""BaseAgent: CONTRACT A."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handwork.agent.base import BaseAgent
from handwork.agent.react import ReActAgent
from handwork.agent.toolcall import ToolCallAgent
from handwork.config import Settings
from handwork.errors import HandworkError, Waiting
from handwork.schema import AgentState, Budget, Memory, Message, Role, Status
from handwork.session import Session
from tests.agent.conftest import Seen, reopened


class Counting(BaseAgent):
    """Finishes at a step; stores one text a step."""

    name = "counting"
    finish_at: int = 3

    async def step(self) -> str:
        self.update_memory("assistant", f"step {self.current_step}")
        if self.current_step == self.finish_at:
            self.state = AgentState.FINISHED
        return f"did {self.current_step}"


async def test_a_run_keeps_a_line_for_each_step_and_ends_idle(settings: Settings) -> None:
    agent = Counting(settings=settings)
    result = await agent.run("go")
    assert result.status is Status.FINISHED
    assert str(result) == "Step 1: did 1\nStep 2: did 2\nStep 3: did 3"
    assert agent.state is AgentState.IDLE


async def test_reaching_max_steps_says_so_and_is_the_status(settings: Settings) -> None:
    result = await Counting(settings=settings, finish_at=99, max_steps=2).run("go")
    assert result.status is Status.MAX_STEPS
    assert result.steps[-1] == "Terminated: Reached max steps (2)"


async def test_finishing_on_the_very_last_step_is_a_finish(settings: Settings) -> None:
    result = await Counting(settings=settings, finish_at=2, max_steps=2).run("go")
    assert result.status is Status.FINISHED
    assert "Terminated" not in str(result)


async def test_no_step_at_all_says_no_steps_executed(settings: Settings) -> None:
    assert str(await Counting(settings=settings, max_steps=0).run("go")) == "No steps executed"


async def test_current_step_starts_anew_in_every_run_and_memory_goes_on(settings: Settings) -> None:
    agent = Counting(settings=settings)
    await agent.run("one")
    await agent.run("two")
    assert agent.current_step == 3
    assert [m.content for m in agent.messages if m.role is Role.USER] == ["one", "two"]


async def test_a_run_from_another_state_than_idle_is_refused(settings: Settings) -> None:
    agent = Counting(settings=settings, state=AgentState.RUNNING)
    with pytest.raises(RuntimeError, match="^Cannot run agent from state: RUNNING$"):
        await agent.run("go")


async def test_after_an_error_the_agent_is_error_until_reset_and_memory_is_kept(settings: Settings) -> None:
    class Failing(Counting):
        broken: bool = True

        async def step(self) -> str:
            if self.broken:
                raise HandworkError("no luck")
            return await super().step()

    agent = Failing(settings=settings)
    result = await agent.run("go")
    assert result.status is Status.ERROR
    assert isinstance(result.error, HandworkError)
    with pytest.raises(HandworkError, match="no luck"):
        result.raise_for_status()
    assert agent.state is AgentState.ERROR
    with pytest.raises(RuntimeError, match="Cannot run agent from state: ERROR"):
        await agent.run("again")
    agent.reset()
    agent.broken = False
    assert (await agent.run()).status is Status.FINISHED
    assert agent.messages[0].content == "go"


async def test_an_exception_of_user_code_in_a_step_is_a_result_not_a_crash(settings: Settings) -> None:
    class Buggy(Counting):
        async def step(self) -> str:
            raise ZeroDivisionError("oops")

    result = await Buggy(settings=settings).run("go")
    assert result.status is Status.ERROR
    assert isinstance(result.error, ZeroDivisionError)


@pytest.mark.parametrize("cls", [BaseAgent, ReActAgent])
def test_an_agent_without_its_abstract_methods_cannot_be_made(cls: type[BaseAgent]) -> None:
    with pytest.raises(TypeError):
        cls()


def test_an_unknown_field_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(TypeError, match="max_step.*max_steps"):
        Counting(max_step=3)


def test_a_word_that_ends_some_fields_names_are_those() -> None:
    with pytest.raises(TypeError, match="has no field 'tools': did you mean 'available_tools'\\?"):
        ToolCallAgent(tools=[])
    with pytest.raises(TypeError, match="did you mean 'next_step_prompt' or 'system_prompt'"):
        Counting(prompt="x")


def test_two_agents_share_no_memory() -> None:
    first, second = Counting(), Counting()
    first.update_memory("user", "hello")
    assert second.messages == []
    assert Counting.memory.messages == []


def test_defaults_of_max_steps() -> None:
    assert Counting().max_steps == 10
    assert Counting(max_steps=50).max_steps == 50


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="^Unsupported message role: robot$"):
        Counting().update_memory("robot", "hi")


async def test_state_context_restores_the_state_and_refuses_what_is_none() -> None:
    agent = Counting()
    async with agent.state_context(AgentState.RUNNING):
        assert agent.state is AgentState.RUNNING
    assert agent.state is AgentState.IDLE
    with pytest.raises(ValueError, match="^Invalid state: busy$"):
        async with agent.state_context("busy"):
            pass


async def test_messages_can_be_read_set_and_extended_and_are_journaled(settings: Settings) -> None:
    async with Session.open(settings) as session:
        agent = Counting(settings=settings, session=session, finish_at=1)
        await agent.run("one")
        agent.messages += [Message.user_message("by hand")]
        agent.messages = [*agent.messages, Message.assistant_message("set")]
        await agent.run("two")
    async with reopened(session) as again:
        assert [m.content for m in again.past.messages] == [m.content for m in agent.messages]


async def test_a_rewritten_history_is_what_the_journal_replays_to(settings: Settings) -> None:
    async with Session.open(settings) as session:
        agent = Counting(settings=settings, session=session)
        await agent.run("one")
        del agent.messages[1:]
        agent.memory.messages[0] = Message.user_message("changed")
        await agent.run()
    async with reopened(session) as again:
        assert [m.content for m in again.past.messages] == [m.content for m in agent.messages]
        assert again.past.messages[0].content == "changed"


async def test_steps_that_store_the_same_again_and_again_end_as_stuck(settings: Settings) -> None:
    class Looping(BaseAgent):
        async def step(self) -> str:
            self.update_memory("assistant", "the same")
            return "x"

    result = await Looping(settings=settings, max_steps=30).run("go")
    assert result.status is Status.STUCK
    assert len(result.steps) == 5  # three alike, then duplicate_threshold more


async def test_an_alternation_is_stuck_too(settings: Settings) -> None:
    class Swinging(BaseAgent):
        async def step(self) -> str:
            self.update_memory("assistant", "AB"[self.current_step % 2])
            return "x"

    result = await Swinging(settings=settings, max_steps=30).run("go")
    assert result.status is Status.STUCK
    assert len(result.steps) == 8  # A-B three times, then two more


async def test_a_step_that_stores_nothing_is_never_stuck(settings: Settings) -> None:
    class Quiet(BaseAgent):
        async def step(self) -> str:
            return "nothing"

    assert (await Quiet(settings=settings, max_steps=12).run("go")).status is Status.MAX_STEPS


async def test_is_stuck_and_handle_stuck_state_can_be_overridden_one_by_one(settings: Settings) -> None:
    class Own(Counting):
        asked: int = 0

        def is_stuck(self) -> bool:
            return self.current_step == 2

        def handle_stuck_state(self) -> None:
            self.asked += 1
            self.state = AgentState.FINISHED

    agent = Own(settings=settings, finish_at=99)
    result = await agent.run("go")
    assert (agent.asked, len(result.steps)) == (1, 2)


async def test_cancel_ends_the_run_as_cancelled_and_returns(settings: Settings) -> None:
    class Waits(BaseAgent):
        async def step(self) -> str:
            self.entered.set()
            await asyncio.Event().wait()
            return ""

        entered: Any = None

    agent = Waits(settings=settings, entered=asyncio.Event())
    run = asyncio.create_task(agent.run("go"))
    await agent.entered.wait()
    agent.cancel()
    result = await run
    assert result.status is Status.CANCELLED
    assert agent.state is AgentState.IDLE


async def test_cancelling_the_task_tells_run_finished_and_raises(settings: Settings, seen: Seen) -> None:
    entered = asyncio.Event()

    class Waits(BaseAgent):
        async def step(self) -> str:
            entered.set()
            await asyncio.Event().wait()
            return ""

    agent = Waits(settings=settings)
    run = asyncio.create_task(agent.run("go", listener=seen))
    await entered.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert seen.types()[-1] == "run_finished"
    assert seen[-1].status is Status.CANCELLED
    assert agent.state is AgentState.IDLE


async def test_a_step_that_ignores_cancelling_is_left_behind_with_a_notice(settings: Settings, seen: Seen) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    class Stubborn(BaseAgent):
        async def step(self) -> str:
            entered.set()
            while not leave.is_set():
                try:
                    await leave.wait()
                except asyncio.CancelledError:
                    continue
            return ""

    agent = Stubborn(settings=settings)
    run = asyncio.create_task(agent.run("go", listener=seen))
    await entered.wait()
    agent.cancel()
    assert (await run).status is Status.CANCELLED
    assert any("did not stop within 1.5 seconds" in event.text for event in seen.of("notice"))
    leave.set()


async def test_time_that_is_over_ends_the_run_as_timeout(settings: Settings) -> None:
    class Waits(BaseAgent):
        async def step(self) -> str:
            await asyncio.Event().wait()
            return ""

    result = await Waits(settings=settings, timeout=0.05).run("go")
    assert result.status is Status.TIMEOUT


async def test_waiting_for_a_human_is_a_status_of_its_own(settings: Settings) -> None:
    class Asks(BaseAgent):
        async def step(self) -> str:
            raise Waiting("how many?")

    result = await Asks(settings=settings).run("go")
    assert (result.status, result.detail) == (Status.WAITING, "how many?")


async def test_events_come_in_nested_pairs_and_in_sequence(settings: Settings, seen: Seen) -> None:
    await Counting(settings=settings).run("go", listener=seen)
    assert seen.types() == [
        "run_started",
        "state_changed",
        "message_added",
        *["step_started", "message_added", "step_finished"] * 3,
        "state_changed",
        "state_changed",
        "run_finished",
    ]
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))


async def test_step_finished_comes_also_when_a_step_fails(settings: Settings, seen: Seen) -> None:
    class Buggy(Counting):
        async def step(self) -> str:
            raise ZeroDivisionError

    await Buggy(settings=settings).run("go", listener=seen)
    assert seen.types()[-4:] == ["step_started", "step_finished", "state_changed", "run_finished"]


async def test_a_listener_that_raises_is_dropped_with_a_notice_and_the_run_goes_on(
    settings: Settings, seen: Seen
) -> None:
    def broken(event: object) -> None:
        raise RuntimeError("listener")

    async with Session.open(settings, listeners=[broken, seen]) as session:
        result = await Counting(settings=settings, session=session).run("go")
    assert result.status is Status.FINISHED
    assert len(seen.of("notice")) == 1
    assert [event.seq for event in session_order(seen)] == sorted(event.seq or 0 for event in seen)


def session_order(seen: Seen) -> list[Any]:
    return sorted(seen, key=lambda event: event.seq or 0)


async def test_stream_yields_every_event_and_ends_with_run_finished(settings: Settings) -> None:
    types = [event.type async for event in Counting(settings=settings).stream("go")]
    assert types[0] == "run_started"
    assert types[-1] == "run_finished"


async def test_leaving_the_stream_early_cancels_the_run(settings: Settings) -> None:
    gone = asyncio.Event()

    class Waits(BaseAgent):
        async def step(self) -> str:
            try:
                await asyncio.Event().wait()
            finally:
                gone.set()
            return ""

    agent = Waits(settings=settings)
    stream = agent.stream("go")
    async for event in stream:
        if event.type == "step_started":
            break
    await stream.aclose()
    assert gone.is_set()
    assert agent.state is AgentState.IDLE


async def test_misuse_raises_out_of_the_stream(settings: Settings) -> None:
    agent = Counting(settings=settings, state=AgentState.FINISHED)
    with pytest.raises(RuntimeError, match="Cannot run agent from state: FINISHED"):
        async for _ in agent.stream("go"):
            pass


async def test_a_bare_run_closes_its_session_and_later_runs_reopen_the_same_id(settings: Settings) -> None:
    agent = Counting(settings=settings)
    first = await agent.run("one")
    second = await agent.run("two")
    assert first.session_id == second.session_id
    async with Session.open(settings, id=first.session_id, create=False) as session:
        assert [m.content for m in session.past.messages if m.role is Role.USER] == ["one", "two"]


async def test_async_with_agent_keeps_one_session_over_its_runs(settings: Settings) -> None:
    async with Counting(settings=settings) as agent:
        await agent.run("one")
        session = agent._own_session
        await agent.run("two")
        assert agent._own_session is session
    assert agent._own_session is None


async def test_an_agent_on_a_session_with_a_past_takes_its_history_over(settings: Settings) -> None:
    first = await Counting(settings=settings).run("one")
    async with Session.open(settings, id=first.session_id, create=False) as session:
        agent = Counting(session=session, settings=settings)
        await agent.run("two")
    assert [m.content for m in agent.messages if m.role is Role.USER] == ["one", "two"]


async def test_a_spent_budget_is_checked_over_the_whole_session(settings: Settings) -> None:
    async with Session.open(settings) as session:
        agent = Counting(session=session, settings=settings, budget=Budget(tokens=10))
        await agent.run("go")
        assert session.budget == Budget(tokens=10)


def test_memory_holds_what_it_was_given_and_never_drops_any() -> None:
    memory = Memory()
    memory.add_messages(Message.user_message(str(n)) for n in range(300))
    assert len(memory.messages) == 300
    assert [m.content for m in memory.get_recent_messages(2)] == ["298", "299"]
    assert memory.to_dict_list()[0] == {"role": "user", "content": "0"}


async def test_construction_needs_no_key_no_file_and_no_network(tmp_path: Path) -> None:
    assert Counting(settings=Settings(environ={})).llm is not None
