"""Going on after an interruption: CONTRACT A14, FAULTS "kill -9"."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from handwork import events as ev
from handwork.agent.toolcall import ToolCallAgent
from handwork.config import PolicySettings, Settings
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Action, Approval, ApprovalRequest, Function, Message, Mode, Role, Status, ToolCall
from handwork.session import Session
from handwork.tool.ask_human import AskHuman
from handwork.tool.function import tool
from handwork.tool.terminate import Terminate
from tests.agent.conftest import Seen


class Work:
    """Tools that count their runs; `gate` is where slow_* wait."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.entered, self.gate = asyncio.Event(), asyncio.Event()

    def tools(self) -> list[Any]:
        async def effect(name: str) -> str:
            """Do something that must not be repeated."""
            self.ran.append(name)
            return f"{name} done"

        async def slow_effect(name: str) -> str:
            """Do something that must not be repeated, slowly."""
            self.ran.append(name)
            self.entered.set()
            await self.gate.wait()
            return f"{name} done"

        @tool(actions=[Action(kind="read", resource="x", repeatable=True)])
        async def slow_look(name: str) -> str:
            """Look slowly."""
            self.ran.append(name)
            self.entered.set()
            await self.gate.wait()
            return f"{name} seen"

        return [effect, slow_effect, slow_look, AskHuman, Terminate]


def agent_of(settings: Settings, work: Work, script: Any, **fields: Any) -> ToolCallAgent:
    return ToolCallAgent(settings=settings, llm=ScriptedModel(script), available_tools=work.tools(), **fields)


async def interrupted(agent: ToolCallAgent, work: Work) -> Any:
    run = asyncio.create_task(agent.run("go"))
    await work.entered.wait()
    agent.cancel()
    return await run


def results(agent: ToolCallAgent) -> list[str]:
    return [message.content or "" for message in agent.messages if message.role is Role.TOOL]


async def test_what_is_to_be_told_comes_before_the_call_that_was_left_open(settings: Settings, seen: Seen) -> None:
    work = Work()
    async with Session.open(settings, listeners=[seen]) as session:
        agent = agent_of(settings, work, [[call("slow_look", name="a")], "went on"], session=session)
        await interrupted(agent, work)
        work.gate.set()
        seen.clear()
        session.notify("info", "Model: x")
        await agent.run()
    told = seen.of("run_started", "notice", "tool_call_started")
    assert [event.type for event in told] == ["run_started", "notice", "tool_call_started"]


async def test_cancel_keeps_completed_results_and_the_unknown_one_is_answered_as_unknown(settings: Settings) -> None:
    work = Work()
    calls = [call("effect", name="a"), call("slow_effect", name="b"), call("effect", name="c")]
    agent = agent_of(settings, work, [calls, "went on"])
    assert (await interrupted(agent, work)).status is Status.CANCELLED
    result = await agent.run()
    assert (result.status, result.output) == (Status.FINISHED, "went on")
    assert work.ran == ["a", "b", "c"]  # c never started before; nothing ran twice
    first, second, third = results(agent)
    assert "a done" in first
    assert second.startswith("Outcome unknown:")
    assert "c done" in third
    assert [m.content for m in agent.messages if m.role is Role.USER] == ["go"]


async def test_a_call_that_a_stopped_run_never_began_does_not_run_before_the_model_has_read_what_is_said_next(
    settings: Settings,
) -> None:
    work = Work()
    calls = [call("effect", name="a"), call("slow_effect", name="b"), call("effect", name="c")]
    agent = agent_of(settings, work, [calls, "I stop."])
    await interrupted(agent, work)
    assert (await agent.run("Stop! Delete nothing.")).output == "I stop."
    assert work.ran == ["a", "b"]
    assert results(agent)[2].startswith("Not executed: the run was stopped before this call began")
    assert agent.messages[-2].content == "Stop! Delete nothing."


async def test_what_a_stopped_run_did_not_begin_is_decided_by_the_run_that_made_the_calls(settings: Settings) -> None:
    work = Work()
    stopped = agent_of(settings, work, [call("slow_effect", name="a")])
    id = (await interrupted(stopped, work)).session_id
    async with Session.open(settings, id=id) as session:
        late = ToolCall(id="late", function=Function(name="effect", arguments='{"name": "b"}'))
        session.emit(ev.MessageAdded(message=Message.from_tool_calls([late])))  # and then the program was killed
    async with Session.open(settings, id=id) as session:
        await agent_of(settings, work, ["ok"], session=session).run("go on")
    assert work.ran == ["a", "b"]


async def test_a_call_that_was_put_to_the_human_and_not_decided_is_put_again_whatever_the_mode_is_now(
    settings: Settings,
) -> None:
    asked: list[str] = []

    async def stop(request: ApprovalRequest) -> Approval:
        agent.cancel()
        await asyncio.Event().wait()
        raise AssertionError

    async def deny(request: ApprovalRequest) -> Approval:
        asked.append(request.why)
        return Approval(decision="deny")

    work = Work()
    asks = settings.model_copy(update={"policy": PolicySettings(approve=Mode.ASK)})
    auto = settings.model_copy(update={"policy": PolicySettings(approve=Mode.AUTO)})
    agent = agent_of(asks, work, [call("effect", name="a")], approve=stop)
    id = (await agent.run("go")).session_id
    async with Session.open(auto, id=id, approve=deny) as session:
        again = agent_of(auto, work, ["ok"], session=session)
        await again.run()
    assert work.ran == []
    assert asked == ["you were asked before and have not decided"]
    assert "the user denied this call" in results(again)[0]


async def test_without_a_human_a_call_that_was_put_and_not_decided_does_not_run(settings: Settings) -> None:
    async def stop(request: ApprovalRequest) -> Approval:
        agent.cancel()
        await asyncio.Event().wait()
        raise AssertionError

    work = Work()
    asks = settings.model_copy(update={"policy": PolicySettings(approve=Mode.ASK)})
    agent = agent_of(asks, work, [call("effect", name="a")], approve=stop)
    id = (await agent.run("go")).session_id
    async with Session.open(settings, id=id) as session:
        again = agent_of(settings, work, ["ok"], session=session)
        await again.run()
    assert work.ran == []
    assert "nobody is there to approve it" in results(again)[0]


async def test_a_repeatable_call_is_simply_run_again(settings: Settings) -> None:
    work = Work()
    agent = agent_of(settings, work, [call("slow_look", name="a"), "ok"])
    await interrupted(agent, work)
    work.gate.set()
    assert (await agent.run()).status is Status.FINISHED
    assert work.ran == ["a", "a"]


@pytest.mark.parametrize(
    ("answer", "ran", "text"),
    [
        ("run", 2, "b done"),
        ("'Run it again'", 2, "b done"),
        ("skip", 1, "Outcome unknown:"),
        ("", 1, "Outcome unknown:"),
        ("it wrote half the file", 1, "it wrote half the file"),
    ],
)
async def test_a_human_at_the_door_decides_about_an_unknown_outcome(
    settings: Settings, answer: str, ran: int, text: str
) -> None:
    async def ask(question: Any) -> str:
        work.gate.set()
        return answer

    work = Work()
    agent = agent_of(settings, work, [call("slow_effect", name="b"), "ok"], ask=ask)
    await interrupted(agent, work)
    await agent.run("go on")
    assert work.ran == ["b"] * ran
    assert text in results(agent)[0]


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("bash", '{"command": "make install"}', "    bash: make install"),
        ("python_execute", '{"code": "a = 1\\nb = 2"}', "    python_execute:\n    a = 1\n    b = 2"),
        ("edit", '{"path": "a.txt", "line": 3, "ok": true}', "    edit: path=a.txt, line=3, ok=true"),
        ("edit", '{"path": "a.txt", "text": "x\\ny"}', "    edit:\n    path: a.txt\n    text: x\n    y"),
        ("edit", "{", "    edit: {"),
        ("restart", "", "    restart\n"),
        ("bash", json.dumps({"command": "x" * 9000}), " … "),
    ],
)
async def test_the_question_shows_the_call_in_words_and_says_what_each_answer_means(
    settings: Settings, name: str, arguments: str, shown: str
) -> None:
    asked: list[str] = []

    async def ask(question: Any) -> str:
        asked.append(question.text)
        return ""

    lost = ToolCall(id="1", function=Function(name=name, arguments=arguments))
    async with Session.open(settings, ask=ask) as session:
        session.emit(ev.MessageAdded(message=Message.from_tool_calls([lost])))
        session.emit(ev.ToolCallStarted(call=lost, actions=(Action(kind="execute", resource="*"),)))
        agent = agent_of(settings, Work(), ["ok"], session=session)
        await agent.run("go on")
    [text] = asked
    assert shown in text
    assert "Enter alone does the same" in text
    assert len(text) < 2_500


async def test_the_pairs_are_closed_also_when_a_run_is_cancelled(settings: Settings, seen: Seen) -> None:
    work = Work()
    agent = agent_of(settings, work, [call("slow_effect", name="b")])
    run = asyncio.create_task(agent.run("go", listener=seen))
    await work.entered.wait()
    agent.cancel()
    await run
    wanted = ["tool_call_started", "tool_call_finished", "step_finished", "run_finished"]
    assert [kind for kind in seen.types() if kind in wanted] == wanted


async def test_another_process_goes_on_from_the_journal(settings: Settings) -> None:
    work = Work()
    calls = [call("effect", name="a"), call("slow_effect", name="b"), call("effect", name="c")]
    first = agent_of(settings, work, [calls])
    session_id = (await interrupted(first, work)).session_id
    async with Session.open(settings, id=session_id, create=False) as session:
        second = agent_of(settings, work, ["went on"], session=session)
        assert (await second.run()).output == "went on"
    assert work.ran == ["a", "b", "c"]
    assert [text.split(":")[0] for text in results(second)][1] == "Outcome unknown"


async def test_a_question_without_a_human_waits_and_the_next_request_is_its_answer(settings: Settings) -> None:
    work = Work()
    agent = agent_of(settings, work, [[call("effect", name="a"), call("ask_human", inquire="How many?")], "ok"])
    result = await agent.run("go")
    assert result.status is Status.WAITING
    assert "How many?" in result.detail
    async with Session.open(settings, id=result.session_id, create=False) as session:
        again = agent_of(settings, work, ["thanks"], session=session)
        result = await again.run("seven")
    assert (result.status, result.output) == (Status.FINISHED, "thanks")
    assert work.ran == ["a"]
    assert "seven" in results(again)[1]
    assert [m.content for m in again.messages if m.role is Role.USER] == ["go"]


async def test_going_on_without_an_answer_waits_again(settings: Settings) -> None:
    work = Work()
    agent = agent_of(settings, work, [call("ask_human", inquire="How many?")])
    assert (await agent.run("go")).status is Status.WAITING
    assert (await agent.run()).status is Status.WAITING
    assert len(agent.llm.requests) == 1


async def test_a_human_at_the_door_answers_at_once(settings: Settings, seen: Seen) -> None:
    async def ask(question: Any) -> str:
        return f"seven, to {question.text}"

    agent = agent_of(settings, Work(), [call("ask_human", inquire="How many?"), "ok"], ask=ask)
    assert (await agent.run("go", listener=seen)).status is Status.FINISHED
    assert "seven, to How many?" in results(agent)[0]
    assert [event.type for event in seen.of("question_asked", "question_answered")] == [
        "question_asked",
        "question_answered",
    ]


async def test_open_calls_in_a_history_from_elsewhere_are_answered_where_they_stand(settings: Settings) -> None:
    lost = ToolCall(id="old", function=Function(name="effect", arguments='{"name": "x"}'))
    agent = agent_of(settings, Work(), ["ok"])
    agent.messages = [
        Message.user_message("before"),
        Message.from_tool_calls([lost]),
        Message.user_message("then this"),
        Message.from_tool_calls([ToolCall(id="new", function=Function(name="effect", arguments='{"name": "y"}'))]),
    ]
    await agent.run("go")
    roles = [message.role.value for message in agent.messages]
    assert roles == ["user", "assistant", "tool", "user", "assistant", "tool", "user", "assistant"]
    assert agent.messages[2].content.startswith("Outcome unknown")
    assert "y done" in agent.messages[5].content


async def test_an_old_terminate_does_not_swallow_a_new_request(settings: Settings) -> None:
    agent = agent_of(settings, Work(), ["answer to the new"])
    agent.messages = [Message.user_message("old"), Message.from_tool_calls([call("terminate", status="failure")])]
    result = await agent.run("new")
    assert (result.status, result.output) == (Status.FINISHED, "answer to the new")


async def test_the_intent_is_on_disk_before_its_effect_and_the_result_before_the_next_request(
    settings: Settings,
) -> None:
    on_disk: list[list[str]] = []

    async def effect() -> str:
        """See what is on disk."""
        on_disk.append(kinds_on_disk(settings, session.id))
        return "done"

    def model(request: Any) -> Any:
        on_disk.append(kinds_on_disk(settings, session.id))
        return call("effect") if len(request.messages) == 1 else "ok"

    async with Session.open(settings) as session:
        agent = ToolCallAgent(settings=settings, session=session, llm=ScriptedModel(model), available_tools=[effect])
        await agent.run("go")
    assert on_disk[0][-1] == "request_sent"
    assert on_disk[1][-1] == "tool_call_started"
    assert "tool_call_finished" in on_disk[2]
    assert on_disk[2][-1] == "request_sent"


def kinds_on_disk(settings: Settings, session_id: str) -> list[str]:
    """Read with a connection of our own what is committed."""
    with closing(sqlite3.connect(settings.store_path)) as db:
        rows = db.execute("select data from events order by seq").fetchall()
    return [ev.read_event(data).type for (data,) in rows]
