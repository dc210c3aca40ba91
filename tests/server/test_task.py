"""run_task: a client has an agent work on a task."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handwork.events import RunFinished
from tests.server.clients import MODES, Progress, connected, events_of, text_of
from tests.server.conftest import MakeHouse
from tests.server.watching import sleeping, until
from tests.support.strict_server import Script, StrictServer, tool

both_eras = pytest.mark.parametrize("mode", MODES)


def model(server: StrictServer) -> dict[str, Any]:
    return {"model": "openai:any", "base_url": server.url}


@both_eras
async def test_the_answer_comes_with_the_status_and_the_session(
    make_house: MakeHouse, mode: str, workspace: Path
) -> None:
    told = Progress()
    async with StrictServer([tool("bash", command="echo 42 > answer"), "It is 42."]) as server:
        async with connected(make_house(llm=model(server)), mode) as client:
            result = await client.call_tool("run_task", {"task": "Find it."}, progress_callback=told)
        assert not server.refused
    assert not result.is_error
    assert text_of(result) == "It is 42."
    session = result.structured_content.pop("session")
    assert result.structured_content == {"status": "finished", "answer": "It is 42.", "steps": 2}
    assert session
    assert (workspace / "answer").read_text() == "42\n"
    assert "Step 1" in "\n".join(told)
    assert told.numbers == sorted(set(told.numbers))


@both_eras
async def test_a_later_task_goes_on_with_the_conversation(make_house: MakeHouse, mode: str) -> None:
    async with StrictServer(["It is 42.", "Because."]) as server:
        async with connected(make_house(llm=model(server)), mode) as client:
            first = await client.call_tool("run_task", {"task": "Find it."})
            session = first.structured_content["session"]
            again = await client.call_tool("run_task", {"task": "Why?", "session": session})
        assert not server.refused
    assert text_of(again) == "Because."
    assert again.structured_content["session"] == session
    texts = [message["content"] for message in server.requests[1]["messages"]]
    assert [text for text in texts if text in ("Find it.", "It is 42.", "Why?")] == ["Find it.", "It is 42.", "Why?"]


async def test_nobody_goes_on_with_a_session_that_is_not_theirs(make_house: MakeHouse) -> None:
    async with StrictServer(["It is 42."]) as server:
        house = make_house(llm=model(server))
        async with connected(house) as client:
            session = (await client.call_tool("run_task", {"task": "Find it."})).structured_content["session"]
        async with connected(house) as other:
            refused = await other.call_tool("run_task", {"task": "What did you find?", "session": session})
        assert len(server.requests) == 1
    assert refused.is_error
    assert text_of(refused).startswith(f"Error: There is no session '{session}' of this client")


@pytest.mark.parametrize(
    ("script", "arguments", "status"),
    [
        ([tool("terminate", status="failure")], {}, "failed"),
        ([tool("bash", command=f"echo {n}") for n in range(3)], {"max_steps": 2}, "max_steps"),
        ([tool("bash", command="sleep 30")], {"timeout": 1.5}, "timeout"),
        ([tool("ask_human", inquire="Which?")], {}, "waiting"),
        ([{"error": 1}], {}, "error"),
    ],
)
async def test_a_task_that_does_not_finish_is_an_error_that_says_how_it_ended(
    make_house: MakeHouse, script: Script, arguments: dict[str, Any], status: str
) -> None:
    async with (
        StrictServer([] if status == "error" else script) as server,
        connected(make_house(llm=model(server))) as client,
    ):
        result = await client.call_tool("run_task", {"task": "Go.", **arguments})
    assert result.is_error
    assert result.structured_content["status"] == status
    assert text_of(result).startswith(f"Status: {status}")
    assert f'run_task with session "{result.structured_content["session"]}"' in text_of(result)


async def test_the_configured_limits_hold_whatever_a_client_wants(make_house: MakeHouse) -> None:
    script = [tool("bash", command=f"echo {n}") for n in range(5)]
    async with StrictServer(script) as server:
        house = make_house(llm=model(server), limits={"max_steps": 2})
        async with connected(house) as client:
            result = await client.call_tool("run_task", {"task": "Go.", "max_steps": 5})
    assert (result.structured_content["status"], result.structured_content["steps"]) == ("max_steps", 2)


async def test_a_client_gets_no_more_steps_than_the_role_has_where_none_are_configured(make_house: MakeHouse) -> None:
    script = [tool("bash", command=f"echo {n}") for n in range(30)]
    async with StrictServer(script) as server, connected(make_house(llm=model(server))) as client:
        result = await client.call_tool("run_task", {"task": "Go.", "agent": "swe", "max_steps": 1_000_000})
    assert (result.structured_content["status"], result.structured_content["steps"]) == ("max_steps", 20)


async def test_a_spent_budget_ends_the_task(make_house: MakeHouse) -> None:
    async with StrictServer([tool("bash", command="echo 1"), "never asked"]) as server:
        house = make_house(llm=model(server), limits={"max_total_tokens": 1})
        async with connected(house) as client:
            result = await client.call_tool("run_task", {"task": "Go."})
    assert result.structured_content["status"] == "budget"


@both_eras
async def test_all_tasks_of_all_clients_share_one_budget_as_long_as_the_server_runs(
    make_house: MakeHouse, mode: str
) -> None:
    async with StrictServer(["One.", "Two.", "Three."]) as server:
        house = make_house(llm=model(server), limits={"max_total_tokens": 20})
        async with connected(house, mode) as one, connected(house, mode) as other:
            session = (await one.call_tool("run_task", {"task": "Go."})).structured_content["session"]
            assert text_of(await other.call_tool("run_task", {"task": "Go."})) == "Two."
            for client, more in ((one, {}), (other, {}), (one, {"session": session})):
                refused = await client.call_tool("run_task", {"task": "Go.", **more})
                assert refused.is_error
                assert text_of(refused) == (
                    "Error: The budget of 20 tokens for all tasks of this server together is spent (30); "
                    "whoever runs it can start it anew, with a larger --max-total-tokens"
                )
            assert not (await one.call_tool("bash", {"command": "echo 1"})).is_error
        assert len(server.requests) == 2
        anew = make_house(llm=model(server), limits={"max_total_tokens": 20})
        async with connected(anew, mode) as client:
            assert text_of(await client.call_tool("run_task", {"task": "Go."})) == "Three."


async def test_a_task_under_way_ends_when_another_one_has_spent_what_they_share(make_house: MakeHouse) -> None:
    waits = "until test -e spent; do sleep 0.05; done"
    async with StrictServer([tool("bash", command=waits), "The other.", "never asked"]) as server:
        house = make_house(llm=model(server), limits={"max_total_tokens": 25})
        async with connected(house) as one, connected(house) as other:
            working = asyncio.create_task(one.call_tool("run_task", {"task": "Go."}))
            await until(lambda: len(server.requests) == 1)
            assert not (await other.call_tool("run_task", {"task": "Go."})).is_error
            await other.call_tool("bash", {"command": "touch spent"})
            ended = await working
        assert len(server.requests) == 2
    assert ended.structured_content["status"] == "budget"
    assert "for all tasks of this server together is spent (30)" in text_of(ended)
    assert "To go on" not in text_of(ended)


@both_eras
async def test_cancelling_ends_the_run_and_all_that_it_started(
    make_house: MakeHouse, mode: str, workspace: Path
) -> None:
    async with StrictServer([tool("bash", command="echo > begun; sleep 161803 & sleep 161803")]) as server:
        house = make_house(llm=model(server))
        async with connected(house, mode) as client:
            call = asyncio.create_task(client.call_tool("run_task", {"task": "Go."}))
            await until(lambda: (workspace / "begun").exists())
            call.cancel()
            await asyncio.wait({call})
            await until(lambda: not sleeping("161803"))
    assert [event.status for event in events_of(house) if isinstance(event, RunFinished)] == ["cancelled"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Error: Invalid arguments for run_task: "),
        ({"task": ""}, "Error: Invalid arguments for run_task: "),
        ({"task": " \u200b "}, "Error: The task holds no character that can be seen"),
        ({"task": "x", "agent": "manos"}, "Error: There is no agent named 'manos'; did you mean manus?"),
        ({"task": "x", "max_steps": 0}, "Error: Invalid arguments for run_task: "),
        ({"task": "x", "steps": 3}, "Error: Invalid arguments for run_task: "),
    ],
)
async def test_what_is_wrong_with_a_task_is_said(make_house: MakeHouse, arguments: dict[str, Any], words: str) -> None:
    async with connected(make_house()) as client:
        result = await client.call_tool("run_task", arguments)
    assert result.is_error
    assert text_of(result).startswith(words)


async def test_without_a_model_it_is_said_what_to_set(make_house: MakeHouse) -> None:
    async with connected(make_house()) as client:
        result = await client.call_tool("run_task", {"task": "Go."})
    assert result.is_error
    assert "OPENAI_API_KEY" in text_of(result)
    assert "--model" in text_of(result)
