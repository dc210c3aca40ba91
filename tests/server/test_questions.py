"""What only a human can say is asked through the client (elicitation), in both eras of the protocol."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handwork.schema import ApprovalRequest, Function, ToolCall
from handwork.server.desk import Desk
from handwork.server.doors import decision_of, doors
from handwork.server.exchange import Exchange, Reply
from handwork.server.parked import Parked
from tests.server.clients import MODES, Human, connected, text_of
from tests.server.conftest import MakeHouse
from tests.support.strict_server import StrictServer, tool

both_eras = pytest.mark.parametrize("mode", MODES)
ASKING = {"policy": {"approve": "ask"}}
TOUCH = {"command": "touch made"}


@both_eras
async def test_an_approval_shows_exactly_what_will_run_and_allows_it(
    make_house: MakeHouse, mode: str, workspace: Path
) -> None:
    human = Human({"decision": "allow"})
    async with connected(make_house(**ASKING), mode, human) as client:
        result = await client.call_tool("bash", {"command": "touch made # \u202egnp"})
    assert not result.is_error
    assert (workspace / "made").exists()
    assert "command: touch made # ⟨U+202E⟩gnp" in human.asked[0]
    assert human.asked[0].startswith("bash wants to run – ")
    assert human.schemas[0]["properties"]["decision"]["enum"] == ["allow", "allow_session", "deny"]


@both_eras
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"decision": "deny", "reason": "not today"}, "Not executed: the user denied this call: not today"),
        ({"decision": "deny"}, "Not executed: the user denied this call"),
        ("decline", "Not executed: the user denied this call"),
        ("cancel", "Not executed: the user denied this call: the question was dismissed"),
    ],
)
async def test_whatever_is_no_yes_is_a_no(
    make_house: MakeHouse, mode: str, workspace: Path, answer: Any, words: str
) -> None:
    async with connected(make_house(**ASKING), mode, Human(answer)) as client:
        result = await client.call_tool("bash", TOUCH)
    assert result.is_error
    assert text_of(result) == words
    assert not (workspace / "made").exists()


@both_eras
async def test_what_was_allowed_for_the_session_is_not_asked_again(make_house: MakeHouse, mode: str) -> None:
    human = Human({"decision": "allow_session"})
    async with connected(make_house(**ASKING), mode, human) as client:
        for _ in range(2):
            assert not (await client.call_tool("bash", TOUCH)).is_error
    assert len(human.asked) == 1


@both_eras
async def test_a_client_that_can_ask_nobody_is_told_why_it_was_denied(
    make_house: MakeHouse, mode: str, workspace: Path
) -> None:
    async with connected(make_house(**ASKING), mode) as client:
        result = await client.call_tool("bash", TOUCH)
    assert result.is_error
    assert "nobody is there to approve it" in text_of(result)
    assert not (workspace / "made").exists()


@both_eras
async def test_two_questions_at_once_are_put_one_after_another(make_house: MakeHouse, mode: str) -> None:
    human = Human({"decision": "allow"}, {"decision": "deny"})
    async with connected(make_house(**ASKING), mode, human) as client:
        calls = [client.call_tool("bash", {"command": f"echo {n}"}) for n in range(2)]
        results = await asyncio.gather(*calls)
    assert sorted(result.is_error for result in results) == [False, True]
    assert len(human.asked) == 2


@both_eras
@pytest.mark.parametrize(
    ("answer", "reads", "status"),
    [
        ({"answer": "blue"}, "blue", "finished"),
        ("decline", "(The human declined to answer.)", "finished"),
        ("cancel", None, "waiting"),
    ],
)
async def test_a_task_asks_its_human_through_the_client(
    make_house: MakeHouse, mode: str, answer: Any, reads: str | None, status: str
) -> None:
    human = Human(answer)
    async with StrictServer([tool("ask_human", inquire="Which colour?"), "It is done."]) as model:
        llm = {"model": "openai:any", "base_url": model.url}
        async with connected(make_house(llm=llm), mode, human) as client:
            result = await client.call_tool("run_task", {"task": "Paint it."})
        assert not model.refused
    assert human.asked == ["Which colour?"]
    assert result.structured_content["status"] == status
    assert result.is_error is (status != "finished")
    if reads is not None:
        assert reads in model.requests[1]["messages"][-2]["content"] + model.requests[1]["messages"][-1]["content"]


async def test_a_question_that_nobody_comes_back_to_counts_as_dismissed(make_house: MakeHouse) -> None:
    desk, parked = Desk(make_house(**ASKING)), Parked(patience=0.05)
    exchange = Exchange(can_ask=True)
    work = desk.guest("one", "one").begin("bash", TOUCH, exchange)
    await exchange.stirred.wait()
    assert exchange.form is not None
    name = parked.put(work, exchange, exchange.form, None)
    assert (
        await asyncio.wait_for(work, 20)
    ).text == "Not executed: the user denied this call: the question was dismissed"
    assert parked.take(name) is None
    await desk.close()


async def test_the_name_of_a_call_that_waits_works_once(make_house: MakeHouse) -> None:
    desk, parked = Desk(make_house(**ASKING)), Parked()
    exchange = Exchange(can_ask=True)
    work = desk.guest("one", "one").begin("bash", TOUCH, exchange)
    await exchange.stirred.wait()
    assert exchange.form is not None
    name = parked.put(work, exchange, exchange.form, None)
    assert parked.take("another") is None
    assert parked.take(name) is not None
    assert parked.take(name) is None
    await desk.close()
    assert work.cancelled()


@pytest.mark.parametrize(
    ("reply", "decision"),
    [
        (Reply("accept", {"decision": "allow"}), "allow"),
        (Reply("accept", {"decision": "allow_session"}), "allow"),
        (Reply("accept", {"decision": "allow_always"}), "deny"),
        (Reply("accept", {"decision": ["allow"]}), "deny"),
        (Reply("accept", {"decision": True}), "deny"),
        (Reply("accept"), "deny"),
        (Reply("decline", {"decision": "allow"}), "deny"),
        (Reply("cancel", {"decision": "allow"}), "deny"),
    ],
)
def test_only_a_clear_yes_allows(reply: Reply, decision: str) -> None:
    assert decision_of(reply, remembers=False).decision == decision


async def test_who_is_gone_allows_nothing() -> None:
    _, approve = doors(lambda: None)
    call = ToolCall(id="1", function=Function("bash", "{}"))
    assert (await approve(ApprovalRequest(id="1", call=call, actions=(), why="it runs"))).decision == "deny"
