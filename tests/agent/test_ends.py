"""However a run is ended, it ends once and for all: nothing begins after it, every pair is closed, nothing is lost or repeated."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import Settings
from handwork.errors import AuthenticationError, SandboxUnavailable, TokenLimitExceeded, Waiting
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import (
    Action,
    AgentState,
    Function,
    Memory,
    Message,
    Question,
    Reply,
    Role,
    Status,
    ToolCall,
    ToolResult,
)
from handwork.session import Session
from handwork.tool.ask_human import AskHuman
from handwork.tool.base import Tool
from handwork.tool.create_chat_completion import CreateChatCompletion
from handwork.tool.function import tool
from handwork.tool.terminate import Terminate
from tests.agent.conftest import Seen
from tests.support.pictures import png_base64

READ = [Action(kind="read", resource="x", repeatable=True)]


def agent_of(settings: Settings, script: Any, *tools: Any, **fields: Any) -> ToolCallAgent:
    return ToolCallAgent(settings=settings, llm=ScriptedModel(script), available_tools=[*tools, Terminate], **fields)


def results(agent: ToolCallAgent) -> list[str]:
    return [message.content or "" for message in agent.messages if message.role is Role.TOOL]


class Effect:
    """Tools with an effect: `wait` begins and goes on until it is interrupted."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.entered = asyncio.Event()

    def tools(self) -> list[Any]:
        async def pay(name: str) -> str:
            """Pay."""
            self.ran.append(name)
            return f"paid {name}"

        async def wait(name: str) -> str:
            """Begin, and do not end."""
            self.ran.append(name)
            self.entered.set()
            await asyncio.Event().wait()
            return "never"

        return [pay, wait, AskHuman, CreateChatCompletion]


async def stopped(agent: ToolCallAgent, effect: Effect, request: str = "go") -> None:
    run = asyncio.create_task(agent.run(request))
    await effect.entered.wait()
    agent.cancel()
    assert (await run).status is Status.CANCELLED
    effect.entered.clear()


async def test_a_tool_that_swallows_the_cancel_ends_with_the_run_and_keeps_its_result(
    settings: Settings, seen: Seen
) -> None:
    entered = asyncio.Event()

    async def stubborn() -> str:
        """Do not let go."""
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done all the same"
        return ""

    async with Session.open(settings, listeners=[seen]) as session:
        agent = agent_of(settings, lambda request: call("stubborn"), stubborn, session=session)
        run = asyncio.create_task(agent.run("go"))
        await entered.wait()
        agent.cancel()
        assert (await run).status is Status.CANCELLED
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(agent.llm.requests) == 1
        assert seen.types()[-1] == "run_finished"
        [finished] = seen.of("tool_call_finished")
        assert "done all the same" in finished.observation


async def test_a_tool_that_comes_back_after_the_run_changes_nothing_any_more(settings: Settings, seen: Seen) -> None:
    entered, leave, left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stubborn() -> str:
        """Do not let go for long."""
        entered.set()
        while not leave.is_set():
            try:
                await leave.wait()
            except asyncio.CancelledError:
                continue
        left.set()
        return "late"

    async with Session.open(settings, listeners=[seen]) as session:
        agent = agent_of(settings, [call("stubborn"), "second"], stubborn, session=session)
        run = asyncio.create_task(agent.run("go"))
        await entered.wait()
        agent.cancel()
        assert (await run).status is Status.CANCELLED
        told = len(seen)
        leave.set()
        await left.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(seen) == told
        assert len(agent.llm.requests) == 1
        assert (await agent.run("again")).output == "second"


@pytest.mark.parametrize("turns", range(1, 36))
@pytest.mark.parametrize("how", ["cancel", "task", "task twice"])
async def test_wherever_a_run_is_stopped_its_pairs_are_closed_and_the_agent_can_go_on(
    settings: Settings, turns: int, how: str
) -> None:
    ran = []

    async def effect() -> str:
        """Have an effect."""
        ran.append("effect")
        await asyncio.sleep(0)
        return "done"

    seen = Seen()
    async with Session.open(settings, listeners=[seen]) as session:
        agent = agent_of(settings, [[call("effect"), call("effect")], "ok", "went on"], effect, session=session)
        run = asyncio.create_task(agent.run("go"))
        for _ in range(turns):
            await asyncio.sleep(0)
        if how == "cancel":
            agent.cancel()
        else:
            run.cancel()
            if how == "task twice":
                await asyncio.sleep(0)
                run.cancel()
        await asyncio.wait({run})
        if not seen:  # stopped before it began
            return
        assert seen.types()[-1] == "run_finished"
        assert seen.types().count("run_finished") == 1
        for kind in ("step", "tool_call"):
            assert len(seen.of(f"{kind}_started")) == len(seen.of(f"{kind}_finished"))
        assert agent.state is AgentState.IDLE
        before = list(ran)
        await agent.run("go on")
        assert len(ran) <= 2
        unknown = sum(text.startswith("Outcome unknown") for text in results(agent))
        assert len(ran) + unknown >= len(before)


@pytest.mark.parametrize("refusal", ["cancel", "waiting"])
async def test_an_effect_of_unknown_outcome_is_not_repeated_however_the_question_about_it_ends(
    settings: Settings, refusal: str
) -> None:
    effect, asked = Effect(), asyncio.Event()

    async def ask(question: Any) -> str:
        asked.set()
        if refusal == "waiting":
            raise Waiting("nobody")
        await asyncio.Event().wait()
        return ""

    agent = agent_of(settings, [call("wait", name="a"), "ok", "ok"], *effect.tools(), ask=ask)
    await stopped(agent, effect)
    run = asyncio.create_task(agent.run("go on"))
    await asked.wait()
    agent.cancel()
    await run
    agent.ask = None
    await agent.run("and on")
    assert effect.ran == ["a"]
    assert results(agent)[0].startswith("Outcome unknown")


async def test_a_request_that_was_stopped_while_old_calls_were_settled_is_not_lost(settings: Settings) -> None:
    answers = iter(["stop", "skip"])

    async def ask(question: Question) -> str:
        if (answer := next(answers)) == "stop":
            agent.cancel()
            await asyncio.Event().wait()
        return answer

    effect = Effect()
    agent = agent_of(settings, [call("wait", name="a"), "ok"], *effect.tools(), ask=ask)
    await stopped(agent, effect)
    assert (await agent.run("PLEASE DO TWO")).status is Status.CANCELLED
    await agent.run()
    assert [m.content for m in agent.messages if m.role is Role.USER] == ["go", "PLEASE DO TWO"]
    assert effect.ran == ["a"]


async def test_a_text_for_a_new_run_never_answers_another_question_than_the_one_that_waits(settings: Settings) -> None:
    effect = Effect()
    script = [call("wait", name="a"), call("ask_human", inquire="Delete everything?")]
    agent = agent_of(settings, script, *effect.tools())
    await stopped(agent, effect)
    assert (await agent.run("run")).status is Status.WAITING
    assert [m.content for m in agent.messages if m.role is Role.USER] == ["go", "run"]


async def test_a_result_that_was_recorded_for_another_call_of_the_same_id_is_none_of_this_one(
    settings: Settings,
) -> None:
    def pay(n: str) -> ToolCall:
        return ToolCall(id="call_1", function=Function(name="pay", arguments=f'{{"name": "{n}"}}'))

    effect = Effect()
    agent = agent_of(settings, [pay("one"), "ok"], *effect.tools())
    first = await agent.run("go")
    async with Session.open(settings, id=first.session_id) as session:
        again = agent_of(settings, [pay("two"), "ok"], *effect.tools(), session=session)
        again.messages = []
        await again.run("anew")
    assert effect.ran == ["one", "two"]


async def test_what_an_old_call_answered_is_not_the_answer_of_the_new_run(settings: Settings) -> None:
    effect = Effect()
    calls = [
        call("wait", name="a"),
        call("create_chat_completion", response="OLD"),
        call("terminate", status="failure"),
    ]
    agent = agent_of(settings, [calls, "NEW"], *effect.tools())
    await stopped(agent, effect)
    result = await agent.run("new")
    assert (result.status, result.output, result.value) == (Status.FINISHED, "NEW", None)


async def test_a_terminate_that_was_done_before_the_crash_ends_the_run_that_goes_on(settings: Settings) -> None:
    ending = call("terminate", status="failure")
    agent = agent_of(settings, [])
    agent.messages = [Message.user_message("go"), Message.from_tool_calls([ending], "All I could do.")]
    result = await agent.run()
    assert (result.status, result.output, agent.llm.requests) == (Status.FAILED, "All I could do.", [])


async def test_a_tool_whose_restore_fails_costs_a_notice_not_the_session(settings: Settings, seen: Seen) -> None:
    class Counter(Tool):
        name = "counter"

        async def execute(self) -> ToolResult:
            return ToolResult(output="1", details={"n": 1})

        def restore(self, details: Any) -> None:
            raise KeyError("other")

    first = await agent_of(settings, [call("counter"), "ok"], Counter).run("go")
    async with Session.open(settings, id=first.session_id, listeners=[seen]) as session:
        agent = agent_of(settings, ["fine"], Counter, session=session)
        assert (await agent.run("go on")).output == "fine"
    assert any("counter" in event.text for event in seen.of("notice"))


async def test_details_of_the_tools_own_that_say_interrupted_change_nothing(settings: Settings) -> None:
    async def honest() -> ToolResult:
        """Have details."""
        return ToolResult(output="done", details={"interrupted": True})

    effect = Effect()
    agent = agent_of(settings, [[call("honest"), call("wait", name="a")], "ok"], honest, *effect.tools())
    await stopped(agent, effect)
    await agent.run("go on")
    assert "done" in results(agent)[0]


async def test_a_sandbox_that_cannot_start_ends_the_run_and_the_call_has_not_begun(settings: Settings) -> None:
    async def needs_a_sandbox() -> str:
        """Need one."""
        raise SandboxUnavailable("not here")

    agent = agent_of(settings, [call("needs_a_sandbox"), "ok"], needs_a_sandbox)
    result = await agent.run("go")
    assert isinstance(result.error, SandboxUnavailable)
    assert "not here" in str(result)
    agent.reset()
    agent.available_tools = [Terminate]
    await agent.run("on")
    assert not any(text.startswith("Outcome unknown") for text in results(agent))


async def test_waiting_lets_the_calls_beside_it_come_to_their_end(settings: Settings) -> None:
    ended = []

    @tool(actions=READ)
    async def look() -> str:
        """Look for a while."""
        for _ in range(20):
            await asyncio.sleep(0)
        ended.append("look")
        return "seen"

    @tool(actions=READ)
    async def asks(context: Any) -> str:
        """Ask without having said so."""
        return await context.ask("well?")

    result = await agent_of(settings, [[call("look"), call("asks")]], look, asks).run("go")
    assert (result.status, ended) == (Status.WAITING, ["look"])


async def test_what_one_run_counted_does_not_count_for_the_next(settings: Settings) -> None:
    agent = agent_of(settings, [Reply(), Reply(), "ok", Reply(), Reply(), "ok"])
    assert (await agent.run("one")).status is Status.FINISHED
    assert (await agent.run("two")).status is Status.FINISHED


async def test_a_special_tool_that_failed_does_not_end_the_run(settings: Settings) -> None:
    handled: list[Any] = []

    class Watching(ToolCallAgent):
        async def _handle_special_tool(self, name: str, result: Any, **kwargs: Any) -> None:
            handled.append(result.error)
            await super()._handle_special_tool(name, result, **kwargs)

    async def submit() -> str:
        """Fail."""
        raise OSError("upload failed")

    script = [call("submit"), "it failed"]
    agent = Watching(
        settings=settings, llm=ScriptedModel(script), available_tools=[submit], special_tool_names=["submit"]
    )
    assert (await agent.run("go")).output == "it failed"
    assert "upload failed" in handled[0]


async def test_overriding_execute_tool_keeps_the_order_of_calls(settings: Settings) -> None:
    log = []

    class Own(ToolCallAgent):
        async def execute_tool(self, command: ToolCall) -> str:
            log.append(f"in {command.id}")
            await asyncio.sleep(0)
            log.append(f"out {command.id}")
            return command.id

    async def work() -> None:
        """Work on everything."""

    calls = [ToolCall(id=id, function=Function(name="work")) for id in "ab"]
    await Own(settings=settings, llm=ScriptedModel([calls, "ok"]), available_tools=[work]).run("go")
    assert log == ["in a", "out a", "in b", "out b"]


@pytest.mark.parametrize(
    "result",
    [
        ToolResult(output="x", base64_image="!!!not base64"),
        ToolResult(output="\ud800" + "x" * 500_000),
        ToolResult(output="x", details={1: {2, 3}, "o": object()}),
        ToolResult(output="x", system="\ud800"),
    ],
    ids=["image", "long surrogate", "details", "note"],
)
async def test_an_odd_result_is_read_by_the_model_and_the_run_goes_on(settings: Settings, result: ToolResult) -> None:
    async def odd() -> ToolResult:
        """Return something odd."""
        return result

    async def fine() -> str:
        """Be fine."""
        return "fine"

    agent = agent_of(settings, [call("odd"), call("fine"), "ok"], odd, fine)
    assert (await agent.run("go")).output == "ok"


async def test_our_own_keys_are_masked_in_everything_that_a_tool_tells(settings: Settings, seen: Seen) -> None:
    settings = settings.model_copy(update={"environ": {"MY_DB_PASSWORD": "secret-pass-word"}})

    @tool(actions=READ)
    async def leak(context: Any) -> ToolResult:
        """Leak in every way."""
        await context.progress("secret-pass-word")
        artifact = await context.save_artifact("x.txt", b"x", title="secret-pass-word")
        return ToolResult(
            output="secret-pass-word",
            details={"deep": ["secret-pass-word"]},
            system="secret-pass-word",
            artifacts=(artifact,),
        )

    agent = agent_of(settings, [call("leak"), "ok"], leak)
    await agent.run("go", listener=seen)
    assert not any("secret-pass" in event.model_dump_json() for event in seen)


async def test_a_new_picture_is_progress(settings: Settings) -> None:
    pictures = iter(range(100))

    async def look() -> ToolResult:
        """Look again."""
        return ToolResult(output="screen", base64_image=png_base64(next(pictures)))

    result = await agent_of(settings, lambda request: call("look"), look, max_steps=9).run("go")
    assert result.status is Status.MAX_STEPS


async def test_errors_beside_calls_that_get_on_are_not_stuck(settings: Settings) -> None:
    number = iter(range(100))

    def poll() -> int:
        """Get on."""
        return next(number)

    result = await agent_of(settings, lambda request: [call("poll"), call("nope")], poll, max_steps=9).run("go")
    assert result.status is Status.MAX_STEPS


async def test_only_the_cause_of_an_error_makes_it_a_token_limit(settings: Settings) -> None:
    def other_model() -> None:
        raise AuthenticationError("the other key is wrong")

    def model(request: Any) -> Any:
        try:
            raise TokenLimitExceeded
        except TokenLimitExceeded:
            other_model()

    result = await agent_of(settings, model).run("go")
    assert isinstance(result.error, AuthenticationError)


async def test_results_are_settled_in_the_order_of_their_calls_and_orphans_become_words(settings: Settings) -> None:
    effect = Effect()
    a, b = (ToolCall(id=id, function=Function(name="pay", arguments=f'{{"name": "{id}"}}')) for id in "ab")
    agent = agent_of(settings, ["ok"], *effect.tools())
    agent.messages = [
        Message.tool_message("orphan", "pay", "gone"),
        Message.from_tool_calls([a, b]),
        Message.tool_message("paid b", "pay", "b"),
        Message.tool_message("paid b again", "pay", "b"),
        Message.user_message("well?"),
    ]
    await agent.run("go")
    roles = [message.role.value for message in agent.messages]
    assert roles == ["user", "assistant", "tool", "tool", "user", "user", "user", "assistant"]
    assert effect.ran == ["a"]


async def test_a_call_that_later_turns_have_passed_by_is_not_run_any_more(settings: Settings) -> None:
    effect = Effect()
    agent = agent_of(settings, ["ok"], *effect.tools())
    agent.messages = [
        Message.from_tool_calls([call("pay", name="old")]),
        Message.user_message("never mind"),
        Message.assistant_message("fine"),
    ]
    await agent.run("thanks")
    assert effect.ran == []
    assert results(agent)[0].startswith("Outcome unknown")


@pytest.mark.parametrize("how", ["clear", "append", "set"])
async def test_a_tool_that_changes_the_memory_during_its_call_leaves_a_history_that_can_be_sent(
    settings: Settings, how: str
) -> None:
    async def meddle() -> str:
        """Change the history."""
        if how == "clear":
            agent.memory.clear()
        elif how == "append":
            agent.update_memory("user", "by the way")
        else:
            agent.messages = [Message.user_message("something else")]
        return "meddled"

    agent = agent_of(settings, [call("meddle"), "ok"], meddle)
    assert (await agent.run("go")).output == "ok"
    expected: set[str] = set()
    for message in agent.llm.requests[-1].messages:
        if message.role is Role.TOOL:
            expected.remove(message.tool_call_id)
        else:
            assert not expected
            expected = {one.id for one in message.tool_calls}
    assert any("meddled" in (message.content or "") for message in agent.messages)


async def test_settling_always_ends_whatever_the_ids_of_a_history_are(settings: Settings) -> None:
    effect = Effect()
    one, two = (ToolCall(id="c1", function=Function(name="pay", arguments=f'{{"name": "{n}"}}')) for n in "ab")
    agent = agent_of(settings, ["ok"], *effect.tools())
    agent.messages = [
        Message.from_tool_calls([one]),
        Message.user_message("well?"),
        Message.from_tool_calls([two]),
        Message.tool_message("paid b", "pay", "c1"),
    ]
    assert (await agent.run("go")).output == "ok"
    assert [message.role.value for message in agent.messages] == [
        *["assistant", "tool", "user"],
        *["assistant", "tool", "user", "assistant"],
    ]


async def test_a_second_result_among_the_results_of_a_turn_becomes_words_behind_them(settings: Settings) -> None:
    a, b = (ToolCall(id=id, function=Function(name="pay", arguments=f'{{"name": "{id}"}}')) for id in "ab")
    effect = Effect()
    agent = agent_of(settings, ["ok"], *effect.tools())
    agent.messages = [Message.from_tool_calls([a, b]), *(Message.tool_message("x", "pay", id) for id in "aab")]
    await agent.run("go")
    assert [message.role.value for message in agent.messages] == [
        "assistant",
        "tool",
        "tool",
        "user",
        "user",
        "assistant",
    ]
    assert effect.ran == []


async def test_a_memory_that_was_exchanged_is_the_conversation_from_then_on(settings: Settings) -> None:
    effect = Effect()
    agent = agent_of(settings, ["one!", [call("wait", name="a")], "two!"], *effect.tools())
    await agent.run("one")
    await stopped(agent, effect, "two")
    agent.memory = Memory(agent.messages[2:])
    result = await agent.run("three")
    assert [m.content for m in agent.messages if m.role is Role.USER] == ["two", "three"]
    async with Session.open(settings, id=result.session_id) as again:
        assert again.past.messages == agent.messages


async def test_an_answer_that_no_call_takes_is_a_word_of_the_user(settings: Settings) -> None:
    effect = Effect()
    first = await agent_of(settings, [call("ask_human", inquire="Colour?")], *effect.tools()).run("paint")
    async with Session.open(settings, id=first.session_id) as session:
        other = agent_of(settings, ["ok"], session=session)
        await other.run("blue")
    assert [m.content for m in other.messages if m.role is Role.USER] == ["paint", "blue"]


async def test_a_run_whose_session_is_closed_under_it_ends_as_cancelled_with_its_pairs(settings: Settings) -> None:
    effect, seen = Effect(), Seen()
    session = Session.open(settings, listeners=[seen])
    agent = agent_of(settings, [call("wait", name="a")], *effect.tools(), session=session)
    run = asyncio.create_task(agent.run("go"))
    await effect.entered.wait()
    await session.close()
    assert (await run).status is Status.CANCELLED
    assert seen.types()[-1] == "run_finished"
    assert len(seen.of("tool_call_started")) == len(seen.of("tool_call_finished")) == 1


async def test_an_agent_whose_run_was_cancelled_before_it_began_can_run(settings: Settings) -> None:
    agent = agent_of(settings, ["ok"])
    run = asyncio.create_task(agent.run("go"))
    await asyncio.sleep(0)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.wait({run})
    assert agent.state is AgentState.IDLE
    assert (await agent.run("again")).output == "ok"


async def test_an_unknown_outcome_is_said_and_its_pair_is_closed(settings: Settings) -> None:
    effect, seen = Effect(), Seen()
    agent = agent_of(settings, [call("wait", name="a"), "ok"], *effect.tools())
    await stopped(agent, effect)
    await agent.run("go on", listener=seen)
    assert any("not repeated" in event.text for event in seen.of("notice"))
