"""Compacting: the human's words stay, a summary takes the place of the rest, and nothing is lost when it fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from handwork import events as ev
from handwork.agent.compact import compact
from handwork.agent.toolcall import ToolCallAgent
from handwork.agent.transcript import HEADING, kept_words, transcript_of
from handwork.config import Settings
from handwork.errors import BudgetExceeded, HandworkError, JournalError, ServerError, TokenLimitExceeded
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import AgentState, Budget, Function, Image, Message, Reply, Role, Status, ToolCall, Usage
from handwork.session import Session
from handwork.tool.planning import PlanningTool
from tests.agent.conftest import Seen, reopened

LONG = "result " * 300


def look(what: str) -> str:
    """Look at something."""
    return f"{what}: {LONG}"


def agent_of(settings: Settings, script: Any, **fields: Any) -> Any:
    fields.setdefault("available_tools", [look])
    return ToolCallAgent(settings=settings, llm=ScriptedModel(script), **fields)


def texts(holder: Any) -> list[str]:
    """Of an agent, or of a session's past."""
    return [message.content or "" for message in holder.messages]


WORK = [call("look", what="a"), "a is fine"]


async def test_the_humans_words_stay_and_a_summary_takes_the_place_of_the_rest(settings: Settings) -> None:
    async with Session.open(settings) as session:
        agent = agent_of(settings, [*WORK, "State of the work: a was seen.", "and on"], session=session)
        await agent.run("look at a")
        before, after = await compact(agent, "the colours")
        assert before > after > 0
        assert texts(agent) == ["look at a", f"{HEADING}\n\nState of the work: a was seen."]
        assert [message.role for message in agent.messages] == [Role.USER, Role.USER]
        request = agent.llm.requests[2]
        assert (request.tools, request.tail, len(request.messages)) == ((), None, 1)
        shown = request.messages[0].content
        assert "User: look at a" in shown
        assert 'Agent calls look: {"what": "a"}' in shown
        assert "a: result result" in shown
        assert shown.endswith("The user asks for this above all: the colours")
        assert (await agent.run("go on")).output == "and on"
        assert [m.content for m in agent.llm.requests[3].messages][-1] == "go on"
    async with reopened(session) as again:
        assert texts(again.past) == texts(agent)


async def test_it_is_told_as_a_rewritten_memory_and_a_fitted_context_and_not_as_the_models_words(
    settings: Settings, seen: Seen
) -> None:
    async with Session.open(settings, listeners=[seen]) as session:
        agent = agent_of(settings, [*WORK, "summary"], session=session)
        await agent.run("look at a")
        seen.clear()
        before, after = await compact(agent)
    kinds = ["request_sent", "usage_reported", "memory_cleared", "message_added", "message_added", "context_fitted"]
    assert seen.types() == kinds
    fitted = seen[-1]
    assert isinstance(fitted, ev.ContextFitted)
    assert (fitted.before, fitted.after, fitted.how) == (before, after, "compacted")


async def test_a_bare_agent_can_be_compacted_between_its_runs(settings: Settings) -> None:
    agent = agent_of(settings, [*WORK, "summary", "and on"])
    first = await agent.run("look at a")
    await compact(agent)
    second = await agent.run("go on")
    assert first.session_id == second.session_id
    assert texts(agent) == ["look at a", f"{HEADING}\n\nsummary", "go on", "and on"]


async def test_compacting_twice_keeps_the_words_once_and_makes_one_summary_of_two(settings: Settings) -> None:
    agent = agent_of(settings, [*WORK, "first summary", *WORK, "second summary"])
    await agent.run("one")
    await compact(agent)
    await agent.run("two")
    await compact(agent)
    assert texts(agent) == ["one", "two", f"{HEADING}\n\nsecond summary"]
    assert f"Note: {HEADING}\n\nfirst summary" in agent.llm.requests[-1].messages[0].content


@pytest.mark.parametrize("words", [["hi"], ["long " * 2000]])
async def test_too_little_to_compact_says_so_and_asks_nobody(settings: Settings, words: list[str]) -> None:
    agent = agent_of(settings, ["hello"])
    await agent.run(words[0])
    with pytest.raises(HandworkError, match="too little to compact"):
        await compact(agent)
    assert len(agent.llm.requests) == 1
    assert texts(agent) == [*words, "hello"]


async def test_the_demo_sized_model_is_not_asked_for_a_summary(settings: Settings) -> None:
    agent = agent_of(settings, [])
    agent.llm = ScriptedModel([], name="local:small")
    agent.messages = [Message.user_message("go"), Message.assistant_message(LONG)]
    with pytest.raises(HandworkError, match="too small to write a summary"):
        await compact(agent)


async def test_an_agent_that_was_never_run_has_too_little(settings: Settings) -> None:
    with pytest.raises(HandworkError, match="too little"):
        await compact(agent_of(settings, []))


FAILURES: dict[str, tuple[Any, type[Exception], str]] = {
    "error": (ServerError("down"), ServerError, "down"),
    "empty": (Reply(content=" "), HandworkError, "wrote no summary"),
    "calls": (call("look", what="b"), HandworkError, "wrote no summary"),
    "cut off": (Reply(content="The st", finish_reason="length"), HandworkError, "cut off"),
    "longer": ("long " * 5000, HandworkError, "longer than the conversation"),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_what_fails_leaves_memory_and_journal_as_they_were(settings: Settings, failure: str) -> None:
    answer, kind, said = FAILURES[failure]
    async with Session.open(settings) as session:
        agent = agent_of(settings, [*WORK, answer, "and on"], session=session)
        await agent.run("look at a")
        before = list(agent.messages)
        with pytest.raises(kind, match=said):
            await compact(agent)
        assert all(one is two for one, two in zip(agent.messages, before, strict=True))
        assert agent.state is AgentState.IDLE
        assert (await agent.run("go on")).status is Status.FINISHED
    async with reopened(session) as again:
        assert texts(again.past) == texts(agent)
        assert again.past.generation == 0


@pytest.mark.parametrize("by", ["agent", "task"])
async def test_cancelling_leaves_memory_as_it_was(settings: Settings, by: str) -> None:
    entered = asyncio.Event()

    async def wait(request: Any) -> Any:
        entered.set()
        await asyncio.Event().wait()

    agent = agent_of(settings, [*WORK, wait, "and on"])
    await agent.run("look at a")
    before = texts(agent)
    compacting = asyncio.create_task(compact(agent))
    await entered.wait()
    with pytest.raises(RuntimeError, match="Cannot run agent from state: RUNNING"):
        await agent.run("meanwhile")
    with pytest.raises(RuntimeError, match="Cannot compact agent in state: RUNNING"):
        await compact(agent)
    agent.cancel() if by == "agent" else compacting.cancel()
    with pytest.raises(HandworkError if by == "agent" else asyncio.CancelledError):
        await compacting
    assert texts(agent) == before
    assert (await agent.run("go on")).output == "and on"


async def test_a_running_agent_is_not_compacted(settings: Settings) -> None:
    caught: list[str] = []

    async def answer(request: Any) -> Any:
        try:
            await compact(agent)
        except RuntimeError as error:
            caught.append(str(error))
        return "done"

    agent = agent_of(settings, answer)
    assert (await agent.run("go")).status is Status.FINISHED
    assert caught == ["Cannot compact agent in state: RUNNING"]


async def test_after_an_error_the_agent_is_still_in_error(settings: Settings) -> None:
    agent = agent_of(settings, [call("look", what="a"), ServerError("down"), "summary"])
    assert (await agent.run("look at a")).status is Status.ERROR
    await compact(agent)
    assert agent.state is AgentState.ERROR
    assert texts(agent)[-1].endswith("summary")


async def test_what_it_costs_counts_as_any_request(settings: Settings) -> None:
    summary = Reply(content="summary", usage=Usage(input=700, output=50))
    async with Session.open(settings) as session:
        agent = agent_of(settings, [*WORK, summary], session=session)
        await agent.run("look at a")
        spent = session.past.spent.total
        await compact(agent)
        assert session.past.spent.total == spent + 750
        agent.budget = Budget(tokens=spent)
        agent.messages += [Message.assistant_message(LONG)]
        with pytest.raises(BudgetExceeded):
            await compact(agent)
        assert len(agent.llm.requests) == 3


async def test_a_conversation_that_does_not_fit_is_shown_shorter(settings: Settings) -> None:
    def answer(request: Any) -> Any:
        size = len(request.messages[0].content)
        return TokenLimitExceeded("too long") if size > 1500 else "summary"

    agent = agent_of(settings, answer)
    agent.messages = [
        Message.user_message("go"),
        *(Message.assistant_message(f"{number}{LONG}") for number in range(3)),
    ]
    await compact(agent)
    assert len(agent.llm.requests) == 3
    assert "characters are left out here" in agent.llm.requests[-1].messages[0].content
    assert texts(agent) == ["go", f"{HEADING}\n\nsummary"]


async def test_one_that_never_fits_ends_after_three_requests(settings: Settings) -> None:
    agent = agent_of(settings, lambda request: TokenLimitExceeded("too long"))
    agent.messages = [Message.user_message("go"), Message.assistant_message(LONG)]
    with pytest.raises(TokenLimitExceeded):
        await compact(agent)
    assert (len(agent.llm.requests), len(agent.messages)) == (3, 2)


async def test_calls_that_still_wait_for_their_result_stay_and_are_settled(settings: Settings) -> None:
    entered = asyncio.Event()

    async def effect(name: str) -> str:
        """Do something that must not be repeated."""
        entered.set()
        await asyncio.Event().wait()
        return name

    script = [call("look", what="a"), call("effect", name="x"), "summary", "and on"]
    agent = agent_of(settings, script, available_tools=[look, effect])
    run = asyncio.create_task(agent.run("look at a"))
    await entered.wait()
    agent.cancel()
    await run
    await compact(agent)
    assert [message.role.value for message in agent.messages] == ["user", "user", "assistant"]
    assert (await agent.run("go on")).output == "and on"
    assert agent.messages[3].content.startswith("Outcome unknown")


async def test_calls_that_wait_stay_also_behind_older_ones_that_nobody_ever_answered(settings: Settings) -> None:
    def turn(id: str) -> Message:
        return Message.from_tool_calls([ToolCall(id=id, function=Function(name="look"))])

    agent = agent_of(settings, ["summary"])
    agent.messages = [Message.user_message("go"), turn("1"), Message.assistant_message(LONG), turn("2")]
    await compact(agent)
    assert [call.id for message in agent.messages for call in message.tool_calls] == ["2"]


async def test_the_active_plan_stays_in_sight(settings: Settings) -> None:
    plan = call("planning", command="create", plan_id="p", title="Bake", steps=["mix", "bake"])
    agent = agent_of(settings, [[call("look", what="a"), plan], "ok", "summary"], available_tools=[look, PlanningTool])
    await agent.run("go")
    await compact(agent)
    assert texts(agent)[-1].startswith(f"{HEADING}\n\nsummary\n\nThe plan as it stands:\nPlan: Bake (ID: p)")


async def test_steering_is_kept_and_what_tools_returned_in_the_users_place_is_not(settings: Settings) -> None:
    picture = Image(hash="0", media_type="image/png")
    agent = agent_of(settings, ["summary"])
    agent.messages = [
        Message.user_message("draw"),
        Message.assistant_message(LONG),
        Message(role=Role.USER, content="Image returned by look:", images=(picture,), tool_call_id="1"),
        Message(role=Role.USER, content="Result of an earlier call of look:\nx"),
        Message.user_message("in blue"),
    ]
    await compact(agent)
    assert texts(agent) == ["draw", "in blue", f"{HEADING}\n\nsummary"]


async def test_a_journal_that_fails_leaves_memory_as_it_was(settings: Settings) -> None:
    def lose(request: Any) -> str:
        settings.store_path.unlink()
        return "summary"

    async with Session.open(settings) as session:
        agent = agent_of(settings, [*WORK, lose], session=session)
        await agent.run("look at a")
        before = texts(agent)
        with pytest.raises(JournalError):
            await compact(agent)
        assert texts(agent) == before


# ---- what is kept and shown


def test_the_words_that_are_kept_are_bounded() -> None:
    words = [Message.user_message(f"{number} " + "x" * 5000) for number in range(20)]
    kept = kept_words(words)
    assert kept[0] is words[0]
    assert kept[1:] == words[-len(kept) + 1 :]
    assert sum(len(word.content or "") for word in kept) <= 32_000
    [long] = kept_words([Message.user_message("a" * 50_000 + "end")])
    assert len(long.content or "") < 8_200
    assert "characters are left out here" in (long.content or "")
    assert (long.content or "").endswith("end")
    assert kept_words([]) == []


def test_the_newest_pictures_are_kept_and_the_others_named() -> None:
    pictures = [Image(hash=str(number), media_type="image/png") for number in range(6)]
    words = [Message(role=Role.USER, content=f"see {image.hash}", images=(image,)) for image in pictures]
    kept = kept_words(words)
    assert [bool(word.images) for word in kept] == [False, False, True, True, True, True]
    assert "no longer shown" in (kept[0].content or "")


def test_a_transcript_is_bounded_however_long_the_conversation() -> None:
    messages = [Message.tool_message("y" * 100_000, "look", str(number), is_error=True) for number in range(50)]
    text = transcript_of(messages, 1000, 20_000)
    assert len(text) < 20_300
    assert text.startswith("<conversation>\nResult of look (failed): yyy")
