"""@modelcontextprotocol/server-everything over each transport: one sentence for each thing that a server can do."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from handwork.errors import MCPRefused
from handwork.mcp.connection import Connection
from handwork.mcp.content import Embedded, Link, Text
from handwork.tool.pictures import picture_of_base64
from tests.mcp.real.place import Place, pictures_of, place_in, text_of
from tests.support.node import MODULES, listening, node, script

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with place_in(tmp_path_factory.mktemp("everything"), readable=[MODULES]) as place:
        yield place


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["stdio", "sse", "http"])
async def server(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[dict[str, object]]:
    """How it is reached, as settings."""
    if request.param == "stdio":
        yield {"command": node(), "args": [script("everything")]}
        return
    started, path = ("sse", "/sse") if request.param == "sse" else ("streamableHttp", "/mcp")
    async with listening("everything", started) as address:
        yield {"type": request.param, "url": f"http://{address}{path}", "timeout": 20}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def everything(place: Place, server: dict[str, object]) -> AsyncIterator[Connection]:
    connection = place.connect("everything", **server)
    yield connection
    await connection.close()


@pytest.fixture(autouse=True)
def nobody_asked(place: Place) -> None:
    place.person.answers.clear()
    place.person.asked.clear()


async def test_it_tells_who_it_is_and_what_it_offers(everything: Connection) -> None:
    offer = await everything.ready()
    assert (offer.server, offer.version) == ("mcp-servers/everything", "2.0.0")
    assert "echo" in {tool.name for tool in offer.tools}
    assert offer.instructions
    assert offer.resources


async def test_a_tool_is_called_with_its_arguments(everything: Connection) -> None:
    assert text_of(await everything.call("echo", {"message": "grüß dich 🌍"})) == "Echo: grüß dich 🌍"
    assert "is 5" in text_of(await everything.call("get-sum", {"a": 2, "b": 3}))


async def test_arguments_that_it_does_not_take_are_an_error_that_the_model_can_read(everything: Connection) -> None:
    answer = await everything.call("get-sum", {"a": "two"})
    assert answer.failed
    assert "a" in text_of(answer)


async def test_a_tool_that_it_does_not_have_is_an_error(everything: Connection) -> None:
    answer = await everything.call("no-such-tool", {})
    assert answer.failed
    assert "no-such-tool" in text_of(answer)


async def test_a_picture_is_one_that_can_be_decoded(everything: Connection) -> None:
    (picture,) = pictures_of(await everything.call("get-tiny-image", {}))
    assert picture.media_type == "image/png"
    assert picture_of_base64(picture.data).media_type == "image/png"  # the checksum of its colour profile is wrong


async def test_structured_content_and_its_schema_are_kept(everything: Connection) -> None:
    tool = next(tool for tool in (await everything.ready()).tools if tool.name == "get-structured-content")
    assert tool.returns is not None
    assert set(tool.returns["properties"]) == {"temperature", "conditions", "humidity"}
    answer = await everything.call("get-structured-content", {"location": "Chicago"})
    assert answer.structured == {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
    assert json.loads(text_of(answer)) == answer.structured


async def test_hints_about_what_a_tool_does_are_kept(everything: Connection) -> None:
    hints = {tool.name: tool.annotations for tool in (await everything.ready()).tools}
    assert hints["echo"]["readOnlyHint"] is True
    assert hints["echo"]["openWorldHint"] is False
    assert hints["gzip-file-as-resource"]["openWorldHint"] is True


async def test_content_with_annotations_is_content_all_the_same(everything: Connection) -> None:
    answer = await everything.call("get-annotated-message", {"messageType": "error", "includeImage": True})
    assert text_of(answer) == "Error: Operation failed"
    assert not answer.failed
    assert len(pictures_of(answer)) == 1


async def test_links_to_resources_come_with_their_names(everything: Connection) -> None:
    answer = await everything.call("get-resource-links", {"count": 2})
    links = [part for part in answer.parts if isinstance(part, Link)]
    assert len(links) == 2
    assert all("://" in link.uri and link.name for link in links)


async def test_a_resource_in_a_result_comes_with_its_content(everything: Connection) -> None:
    answer = await everything.call("get-resource-reference", {"resourceType": "Text", "resourceId": 2})
    (found,) = [part for part in answer.parts if isinstance(part, Embedded)]
    assert "Resource 2" in (found.text or "")


async def test_its_resources_and_templates_are_listed_and_read(everything: Connection) -> None:
    listed = await everything.resources()
    plain = [resource for resource in listed if not resource.template]
    templates = [resource.uri for resource in listed if resource.template]
    assert plain
    (first, *_) = await everything.read(plain[0].uri)
    assert first.text
    (made,) = await everything.read(next(uri for uri in templates if "text" in uri).replace("{resourceId}", "7"))
    assert "Resource 7" in (made.text or "")
    (bytes_of,) = await everything.read(next(uri for uri in templates if "blob" in uri).replace("{resourceId}", "7"))
    assert b"Resource 7" in base64.b64decode(bytes_of.blob or "")


async def test_a_resource_that_is_not_there_is_refused(everything: Connection) -> None:
    with pytest.raises(MCPRefused):
        await everything.read("demo://resource/none")


async def test_its_prompts_are_listed_with_what_they_take(everything: Connection) -> None:
    prompts = {prompt.name: prompt for prompt in (await everything.ready()).prompts}
    assert prompts["simple-prompt"].arguments == ()
    taken = {argument.name: argument.required for argument in prompts["args-prompt"].arguments}
    assert taken == {"city": True, "state": False}


async def test_a_prompt_comes_with_its_arguments_put_in(everything: Connection) -> None:
    (message,) = await everything.prompt("args-prompt", {"city": "Ghent"})
    assert message.role == "user"
    assert isinstance(message.part, Text)
    assert "Ghent" in message.part.text


async def test_a_prompt_may_bring_a_resource(everything: Connection) -> None:
    messages = await everything.prompt("resource-prompt", {"resourceType": "Text", "resourceId": "3"})
    assert [type(message.part) for message in messages] == [Text, Embedded]


async def test_a_prompt_without_what_it_needs_is_refused(everything: Connection) -> None:
    with pytest.raises(MCPRefused):
        await everything.prompt("args-prompt", {})


async def test_progress_is_told_while_a_call_runs(everything: Connection) -> None:
    said: list[str] = []

    async def told(text: str) -> None:
        said.append(text)

    await everything.call("trigger-long-running-operation", {"duration": 0.3, "steps": 3}, progress=told)
    assert [word for word in ("1/3", "2/3", "3/3") if any(word in text for text in said)] == ["1/3", "2/3", "3/3"]


async def test_a_call_that_is_cancelled_ends_at_once_and_hurts_no_other(everything: Connection) -> None:
    began = asyncio.Event()

    async def told(text: str) -> None:
        began.set()

    call = asyncio.create_task(
        everything.call("trigger-long-running-operation", {"duration": 200, "steps": 2000}, progress=told)
    )
    await asyncio.wait_for(began.wait(), 30)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(call, 5)
    assert text_of(await everything.call("echo", {"message": "still here"})) == "Echo: still here"


async def test_calls_run_beside_each_other(everything: Connection) -> None:
    """The slow one reports progress before the quick one is even sent, and ends after it."""
    began, ended = asyncio.Event(), list[str]()

    async def told(text: str) -> None:
        began.set()

    async def slow() -> None:
        await everything.call("trigger-long-running-operation", {"duration": 2, "steps": 20}, progress=told)
        ended.append("slow")

    running = asyncio.create_task(slow())
    await asyncio.wait_for(began.wait(), 30)
    await everything.call("echo", {"message": "quick"})
    ended.append("quick")
    await running
    assert ended == ["quick", "slow"]


async def test_a_question_of_the_server_reaches_the_person_and_her_answer_the_server(
    everything: Connection, place: Place
) -> None:
    place.person.answers += ["Ada Lovelace", *[""] * 20]
    answer = text_of(await everything.call("trigger-elicitation-request", {}))
    assert "Name: Ada Lovelace" in answer
    assert "Favorite Integer: 42" in answer  # the default, where nothing was said
    assert "everything" in place.person.asked[0]


async def test_sampling_is_not_offered(everything: Connection) -> None:
    """The server shows tools that need it only to clients that say they can do it."""
    names = {tool.name for tool in (await everything.ready()).tools}
    assert {"get-roots-list", "trigger-elicitation-request"} <= names
    assert "trigger-sampling-request" not in names


async def test_the_workspace_is_its_root(everything: Connection, place: Place) -> None:
    assert place.workspace.as_uri() in text_of(await everything.call("get-roots-list", {}))


async def test_what_it_logs_does_not_disturb_a_call(everything: Connection) -> None:
    started = text_of(await everything.call("toggle-simulated-logging", {}))
    assert started.startswith("Started simulated")
    assert text_of(await everything.call("echo", {"message": "on"})) == "Echo: on"
    assert text_of(await everything.call("toggle-simulated-logging", {})).startswith("Stopped simulated")


async def test_without_a_person_it_offers_the_same_and_its_questions_are_cancelled(
    place: Place, server: dict[str, object], everything: Connection
) -> None:
    connection = place.connect("alone", alone=True, **server)
    assert (await connection.ready()).tools == (await everything.ready()).tools
    assert "cancelled" in text_of(await connection.call("trigger-elicitation-request", {}))
    await connection.close()


async def test_the_environment_of_its_program_is_what_the_settings_give(place: Place) -> None:
    connection = place.connect("env", command=node(), args=[script("everything")], env={"GREETING": "hello"})
    found = json.loads(text_of(await connection.call("get-env", {})))
    assert found["GREETING"] == "hello"
    assert not [name for name in found if name.startswith("HANDWORK_") or name.endswith("_API_KEY")]


async def test_a_server_that_does_well_costs_no_notice_and_a_tool_that_is_left_out_is_known_to_who_looks(
    everything: Connection, place: Place
) -> None:
    assert "simulate-research-query" not in {tool.name for tool in (await everything.ready()).tools}
    assert place.notices == []
    assert everything.left_out[0].startswith(
        "1 entry left out: simulate-research-query: it can only be called as a task"
    )
