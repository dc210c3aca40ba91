"""A connection to a server that behaves: what is asked, told, cancelled and closed."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handwork.errors import MCPRefused, MCPUnavailable
from handwork.mcp.connection import Connection
from handwork.mcp.content import Answer, Embedded, Media, PromptMessage, Text
from tests.server.watching import until

from .place import Place, opened

ERAS = pytest.mark.parametrize("era", [(), ("--modern",)], ids=["2025", "2026"])


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path) as place:
        yield place


def words(answer: Answer) -> str:
    return ", ".join(part.text for part in answer.parts if isinstance(part, Text))


@ERAS
async def test_a_server_is_connected_listed_called_and_closed(place: Place, era: tuple[str, ...]) -> None:
    connection = place.connect("--instructions", "Be kind.", *era)
    assert connection.state == "idle"
    offer = await connection.ready()
    assert (connection.state, connection.failure, offer.server, offer.instructions) == ("ready", "", "stub", "Be kind.")
    assert [tool.name for tool in offer.tools] == ["add", "echo"]
    assert offer.protocol == ("2026-07-28" if era else "2025-11-25")
    assert words(await connection.call("echo", {"text": "hällo 🌍"})) == "hällo 🌍"
    await connection.close()
    await connection.close()
    assert connection.state == "closed"
    assert place.started[-1].returncode == 0
    with pytest.raises(MCPUnavailable, match="closed"):
        await connection.call("echo", {"text": "more"})


async def test_a_program_is_found_by_a_path_whose_steps_back_lead_through_folders_that_no_sandbox_shows(
    place: Place, tmp_path: Path
) -> None:
    (unseen := tmp_path / "unseen").mkdir()
    there = unseen.joinpath(*[".."] * (len(unseen.parts) - 1), *Path(sys.executable).parts[1:])
    stub = place.stub()
    connection = place.connect_to(stub.model_copy(update={"command": str(there)}))
    assert (await connection.ready()).server == "stub"


@ERAS
async def test_resources_prompts_and_pictures_come_in_our_words(place: Place, era: tuple[str, ...]) -> None:
    connection = place.connect("--resources", "--prompts", *era)
    offer = await connection.ready()
    assert offer.resources
    assert [(prompt.name, prompt.arguments[0].name) for prompt in offer.prompts] == [("greet", "who")]
    assert [(found.uri, found.template) for found in await connection.resources()] == [
        ("stub://one", False),
        ("stub://{name}", True),
    ]
    assert await connection.read("stub://one") == (Embedded("stub://one", "The first."),)
    with pytest.raises(MCPRefused, match="No resource stub://two"):
        await connection.read("stub://two")
    assert await connection.prompt("greet", {"who": "Ada"}) == (PromptMessage("user", Text("Greet Ada")),)
    [picture] = (await connection.call("picture", {})).parts
    assert isinstance(picture, Media)
    assert (picture.kind, picture.media_type) == ("image", "image/png")


async def test_an_error_of_the_tool_is_an_answer_and_one_of_the_server_is_raised(place: Place) -> None:
    connection = place.connect()
    failed = await connection.call("fail", {})
    assert (failed.failed, words(failed)) == (True, "It went wrong")
    with pytest.raises(MCPRefused, match="I will not") as refused:
        await connection.call("refuse", {})
    assert refused.value.code == -32050
    with pytest.raises(MCPRefused, match="Unknown tool: nothing"):
        await connection.call("nothing", {})
    assert words(await connection.call("echo", {"text": "on"})) == "on"


@ERAS
async def test_a_tool_that_wants_to_be_a_task_is_left_out_where_that_is_the_clients_business(
    place: Place, era: tuple[str, ...]
) -> None:
    connection = place.connect("--as-task", "add=required", "--as-task", "echo=optional", *era)
    assert [tool.name for tool in (await connection.ready()).tools] == (["add", "echo"] if era else ["echo"])
    assert words(await connection.call("echo", {"text": "plain"})) == "plain"
    assert (len(connection.left_out), place.notices) == (0 if era else 1, [])


async def test_two_calls_are_under_way_at_once(place: Place) -> None:
    connection = place.connect()
    answers = await asyncio.gather(connection.call("meet", {"n": 2}), connection.call("meet", {"n": 2}))
    assert [words(answer) for answer in answers] == ["met 2", "met 2"]


async def test_answers_in_another_order_reach_their_calls(place: Place) -> None:
    connection = place.connect()
    await connection.ready()
    late = asyncio.create_task(connection.call("after", {}))
    while not late.done():
        assert words(await connection.call("echo", {"text": "first"})) == "first"
    assert words(await late) == "late"


@ERAS
async def test_a_cancelled_call_is_cancelled_at_the_server_and_hurts_nobody_else(
    place: Place, era: tuple[str, ...]
) -> None:
    connection = place.connect(*era)
    told = asyncio.Event()

    async def progress(text: str) -> None:
        told.set()

    call = asyncio.create_task(connection.call("ticks", {}, progress=progress))
    await told.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    *methods, cancelled = json.loads(words(await connection.call("heard", {})))
    assert "notifications/cancelled" in methods
    assert len(cancelled) == 1
    assert connection.state == "ready"


@ERAS
async def test_progress_is_told_in_words(place: Place, era: tuple[str, ...]) -> None:
    told = []

    async def progress(text: str) -> None:
        told.append(text)

    connection = place.connect(*era)
    await connection.call("slow", {"ticks": 3, "seconds": 0.3}, progress=progress)
    assert told == ["working (1/3)", "working (2/3)", "working (3/3)"]


async def test_progress_gives_a_call_its_time_again(place: Place) -> None:
    told = []

    async def progress(text: str) -> None:
        told.append(text)
        place.clock.pass_(20)

    connection = place.connect()
    await connection.ready()
    answer = await connection.call("slow", {"ticks": 4, "seconds": 0.8}, progress=progress)
    assert words(answer) == "slow done"
    assert len(told) > 1


async def test_a_loud_word_of_the_log_belongs_to_the_only_call_and_the_others_are_kept(place: Place) -> None:
    told = []

    async def progress(text: str) -> None:
        told.append(text)

    connection = place.connect()
    await connection.call("log", {}, progress=progress)
    await connection.call("log", {"level": "info", "text": "by the way"}, progress=progress)
    assert (told, list(connection.log)) == (["warning: careful"], ["info: by the way"])


@ERAS
async def test_a_change_makes_the_offer_stale_until_it_is_read_again(place: Place, era: tuple[str, ...]) -> None:
    connection = place.connect(*era)
    await connection.ready()
    assert not connection.stale
    await connection.call("change", {"how": "add"})
    assert connection.stale
    assert [tool.name for tool in (await connection.refresh()).tools] == ["add", "added", "echo"]
    assert not connection.stale


async def test_the_workspace_is_the_servers_root(place: Place) -> None:
    connection = place.connect()
    roots = json.loads(words(await connection.call("roots", {})))
    assert roots == {"roots": [{"uri": place.workspace.as_uri(), "name": "workspace"}]}


async def test_a_folder_that_its_entry_shows_it_is_one_as_well(place: Place, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    connection = place.connect(paths=(str(tmp_path / "notes"),))
    roots = json.loads(words(await connection.call("roots", {})))["roots"]
    assert [root["name"] for root in roots] == ["workspace", "notes"]


async def test_what_a_server_asks_that_nobody_knows_is_refused(place: Place) -> None:
    connection = place.connect()
    assert json.loads(words(await connection.call("strange", {})))["code"] == -32601


@pytest.mark.parametrize("somebody", [True, False])
async def test_a_server_is_told_the_same_whether_a_person_is_there_or_not(place: Place, somebody: bool) -> None:
    async def ask(question: str) -> str:
        raise AssertionError

    connection = place.connect("--more-for-a-person", ask=ask if somebody else None)
    assert [tool.name for tool in (await connection.ready()).tools] == ["add", "ask", "echo"]


async def test_what_a_server_asks_where_nobody_is_there_is_cancelled_at_once(place: Place) -> None:
    connection = place.connect()
    for _ in range(3):
        assert json.loads(words(await connection.call("ask", {}))) == {"action": "cancel"}
    assert place.notices == []


async def test_what_a_server_asks_is_put_to_the_person_and_takes_none_of_the_calls_time(place: Place) -> None:
    asked, other = [], place.connect(name="other")
    await other.ready()

    async def ask(question: str) -> str:
        asked.append(question)
        assert words(await other.call("echo", {"text": "meanwhile"})) == "meanwhile"
        place.clock.pass_(3600)
        return "forty-two"

    connection = place.connect(ask=ask)
    await connection.ready()
    answer = json.loads(words(await connection.call("ask", {"message": "How many?"})))
    assert answer == {"action": "accept", "content": {"answer": "forty-two"}}
    assert "How many?" in asked[0]


async def test_a_server_that_asks_without_end_is_cancelled_unasked_once_the_person_cancelled(place: Place) -> None:
    asked: list[str] = []

    async def ask(question: str) -> str:
        asked.append(question)
        return "cancel" if len(asked) % 3 == 0 else "again"

    connection = place.connect(ask=ask)
    said = json.loads(words(await connection.call("ask", {"times": 50})))
    assert (said, len(asked)) == (["accept"] * 2 + ["cancel"] * 48, 3)
    said = json.loads(words(await connection.call("ask", {"times": 3})))
    assert (said, len(asked)) == (["accept"] * 2 + ["cancel"], 6)


async def test_a_server_that_asks_much_at_once_is_heard_one_question_after_the_other_and_not_all(place: Place) -> None:
    under_way: list[str] = []
    most = 0

    async def ask(question: str) -> str:
        nonlocal most
        under_way.append(question)
        most = max(most, len(under_way))
        for _ in range(20):
            await asyncio.sleep(0)
        under_way.pop()
        return "again"

    connection = place.connect(ask=ask)
    said = json.loads(words(await connection.call("ask", {"times": 200, "together": 200})))
    assert most == 1
    assert {"accept", "cancel"} == set(said)


async def test_a_server_that_asks_out_of_the_blue_disturbs_nobody(place: Place) -> None:
    asked = []

    async def ask(question: str) -> str:
        asked.append(question)
        return "yes"

    connection = place.connect("--ask-first", ask=ask)
    await connection.ready()
    assert "answer" in words(await connection.call("heard", {}))
    assert asked == []


async def test_what_is_asked_before_it_is_connected_waits(place: Place) -> None:
    connection = place.connect("--start-slowly", "0.3")
    connection.start()
    answers = await asyncio.gather(*(connection.call("echo", {"text": str(number)}) for number in range(5)))
    assert [words(answer) for answer in answers] == list("01234")
    assert len(place.started) == 1


async def test_closing_while_it_connects_or_works_leaves_nothing(place: Place) -> None:
    mute, busy = place.connect("--mute"), place.connect()
    waiting = asyncio.create_task(mute.ready())
    call = asyncio.create_task(busy.call("mute", {}))
    while len(place.started) < 2 or busy.state != "ready":
        await asyncio.wait([waiting, call], timeout=0.01)
    async with asyncio.timeout(20):
        await asyncio.gather(mute.close(), busy.close(), busy.close())
        for task in (waiting, call):
            with pytest.raises(MCPUnavailable, match="closed"):
                await task
    assert all(process.returncode is not None for process in place.started)


async def test_closing_by_many_who_are_cancelled_again_and_again_ends_the_program_first(place: Place) -> None:
    connection = place.connect("--mute", "--ignore-end", "--say", "here")
    connection.start()
    await until(lambda: bool(place.started and place.started[0].errors))
    closing = [asyncio.create_task(connection.close()) for _ in range(40)]
    for _ in range(5):
        await asyncio.sleep(0)
        for task in closing[:20]:
            task.cancel()
    ends = await asyncio.gather(*closing, return_exceptions=True)
    assert [isinstance(end, asyncio.CancelledError) for end in ends] == [True] * 20 + [False] * 20
    assert (place.started[0].returncode, connection.state) == (-9, "closed")


async def test_a_task_that_is_cancelled_while_it_closes_leaves_nothing(place: Place) -> None:
    connection = place.connect("--ignore-end")
    await connection.ready()
    closing = asyncio.create_task(connection.close())
    await asyncio.wait([closing], timeout=0.1)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert connection.state == "closed"
    assert place.started[-1].returncode == -9


async def test_a_limit_stands_still_while_a_person_is_asked(place: Place) -> None:
    connection = place.connect()
    await connection.ready()
    call = asyncio.create_task(connection.call("meet", {"n": 2}))
    assert words(await connection.call("echo", {"text": "under way"})) == "under way"
    with place.clock.stopped():
        place.clock.pass_(3600)
        assert words(await connection.call("meet", {"n": 2})) == "met 2"
    assert words(await call) == "met 2"


async def test_the_environment_is_the_sandboxes_and_what_was_given(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    connection = place.connect(env={"GIVEN": "yes"})
    seen: dict[str, Any] = json.loads(words(await connection.call("environment", {})))
    assert seen["GIVEN"] == "yes"
    assert "OPENAI_API_KEY" not in seen


async def test_an_error_before_anything_is_started_is_told_to_whoever_waits(place: Place) -> None:
    nowhere: Any = None
    surroundings = dataclasses.replace(place.surroundings(), workspace=nowhere)
    connection = Connection("stub", place.stub(), surroundings, sleep=place.sleep)
    async with asyncio.timeout(10):
        with pytest.raises(MCPUnavailable, match="The MCP server stub cannot be started: .*NoneType") as caught:
            await connection.ready()
    assert caught.value.lasting
    assert connection.state == "gone"
    await connection.close()
