"""Images in a run: those of tools and those of requests, from where they come in to the request that shows them."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

from handwork.agent.base import BaseAgent
from handwork.agent.toolcall import ToolCallAgent
from handwork.config import LLMSettings, Settings
from handwork.errors import PictureError
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Action, AgentState, Message, Role, Status, ToolResult
from handwork.session import Session
from handwork.store.sqlite import Store
from handwork.tool.ask_human import AskHuman
from handwork.tool.function import tool
from handwork.tool.pictures import picture
from handwork.tool.terminate import Terminate
from tests.agent.conftest import Seen
from tests.support.pictures import png, png_base64, size_of
from tests.support.strict_server import StrictServer
from tests.support.strict_server import tool as wire_call

READ = [Action(kind="read", resource="x", repeatable=True)]


def agent_of(settings: Settings, script: Any, *tools: Any, **fields: Any) -> ToolCallAgent:
    llm = ScriptedModel(script) if isinstance(script, list) else script
    return ToolCallAgent(settings=settings, llm=llm, available_tools=[*tools, Terminate], **fields)


def sees(base64_image: Any, text: str = "drawn") -> Any:
    @tool(actions=READ)
    async def draw() -> ToolResult:
        """Draw."""
        return ToolResult(output=text, base64_image=base64_image)

    return draw


def image_messages(messages: Any) -> list[Message]:
    return [message for message in messages if message.images]


async def test_each_image_is_a_user_message_behind_the_results_of_its_step_and_names_its_call(
    settings: Settings,
) -> None:
    @tool(actions=READ)
    async def add() -> str:
        """Add."""
        return "3"

    first, second = call("draw"), call("draw")
    agent = agent_of(settings, [[first, call("add"), second], "ok"], sees(png_base64(7)), add)
    await agent.run("go")
    assert [m.role for m in agent.messages[2:7]] == [Role.TOOL] * 3 + [Role.USER] * 2
    images = image_messages(agent.messages)
    assert [m.content for m in images] == ["Image returned by draw:"] * 2
    assert [m.tool_call_id for m in images] == [first.id, second.id]


async def test_a_tools_huge_image_is_scaled_before_anything_remembers_it(settings: Settings, seen: Seen) -> None:
    agent = agent_of(settings, [call("draw"), "ok"], sees(png_base64(1, (9000, 100))))
    await agent.run("go", listener=seen)
    [message] = image_messages(agent.messages)
    assert size_of(f"data:image/png;base64,{message.images[0].data}") == (2000, 22)
    [finished] = seen.of("tool_call_finished")
    assert finished.images[0].hash == message.images[0].hash


@pytest.mark.parametrize(
    ("image", "told"),
    [
        (base64.b64encode(png()[:45]).decode(), "broken or incomplete PNG"),
        (base64.b64encode(b"<svg/>").decode(), "SVG"),
        ("!!!", "no base64"),
        (b"bytes", "no base64 text but of type bytes"),
        (base64.b64encode(bytes(51_000_000)).decode(), "too large"),
    ],
    ids=["truncated", "svg", "text", "bytes", "too large"],
)
async def test_an_image_that_cannot_be_used_is_a_note_to_the_model_and_the_next_run_works(
    settings: Settings, image: Any, told: str
) -> None:
    agent = agent_of(settings, [call("draw"), "ok", "fine"], sees(image))
    assert (await agent.run("go")).status is Status.FINISHED
    [result] = [m for m in agent.messages if m.role is Role.TOOL]
    assert told in (result.content or "")
    assert "drawn" in (result.content or "")
    assert not result.is_error
    assert not image_messages(agent.messages)
    assert (await agent.run("again")).output == "fine"


async def test_an_image_is_on_the_wire_with_its_real_type_and_still_there_when_the_session_is_resumed(
    settings: Settings, home: Path, tmp_path: Path
) -> None:
    Pillow.new("RGB", (30, 20), "red").save(tmp_path / "misnamed.png", "JPEG")
    data = base64.b64encode((tmp_path / "misnamed.png").read_bytes()).decode()
    async with StrictServer([wire_call("draw"), "seen", "again"]) as server:
        llm = LLMSettings(model="any", base_url=server.url)
        wired = settings.model_copy(update={"llm": {"default": llm}})
        async with Session.open(wired, tmp_path) as session:
            agent = ToolCallAgent(session=session, available_tools=[sees(data)], settings=wired)
            await agent.run("go")
            id = session.id
        async with Session.open(wired, tmp_path, id) as session:
            await ToolCallAgent(session=session, available_tools=[sees(data)], settings=wired).run("more")
    assert server.refused == []
    for request in server.requests[1:]:
        [part] = [p for m in request["messages"] if isinstance(m["content"], list) for p in m["content"][1:]]
        assert part["image_url"]["url"] == f"data:image/jpeg;base64,{data}"
    store = Store.open(settings.store_path)
    rows = b"".join(bytes(row) if isinstance(row, bytes) else str(row).encode() for _, row in store.events(id))
    store.close()
    assert data.encode() not in rows


async def test_where_no_user_turn_may_follow_a_result_an_image_is_shown_all_the_same(
    settings: Settings, tmp_path: Path
) -> None:
    async with StrictServer([wire_call("draw"), "seen", "again"], user_after_tool=False) as server:
        llm = LLMSettings(model="pixtral-12b", base_url=server.url)
        wired = settings.model_copy(update={"llm": {"default": llm}})
        agent = ToolCallAgent(settings=wired, workspace=tmp_path, available_tools=[sees(png_base64(3))])
        await agent.run("go")
        await agent.run("more")
        assert server.refused == []
    for request in server.requests[1:]:
        [part] = [
            p for m in request["messages"] if isinstance(m["content"], list) for p in m["content"] if "image_url" in p
        ]
        assert size_of(part["image_url"]["url"]) == (4, 4)


async def test_a_run_cancelled_while_an_image_is_decoded_keeps_the_result(settings: Settings, seen: Seen) -> None:
    agent: ToolCallAgent
    picture(png())  # what decodes is loaded

    @tool(actions=READ)
    async def draw() -> ToolResult:
        """Draw."""
        asyncio.get_running_loop().call_soon(agent.cancel)
        return ToolResult(output="drawn", base64_image=png_base64(1, (600, 600)))

    agent = agent_of(settings, [call("draw"), "ok"], draw)
    result = await agent.run("go", listener=seen)
    assert result.status is Status.CANCELLED
    [finished] = seen.of("tool_call_finished")
    assert (finished.ending, len(finished.images)) == ("done", 1)


# ---- images of a request


async def test_images_of_a_request_ride_on_its_message_and_are_journaled_once(
    settings: Settings, seen: Seen, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(png(1))
    agent = agent_of(settings, ["seen"])
    result = await agent.run("look", images=[tmp_path / "a.png", png(2)], listener=seen)
    assert result.output == "seen"
    [message] = image_messages(agent.messages)
    assert (message.content, len(message.images)) == ("look", 2)
    [started] = seen.of("run_started")
    assert started.images == message.images
    assert message.images[0].data not in started.model_dump_json()


async def test_a_stream_takes_images_too(settings: Settings) -> None:
    agent = agent_of(settings, ["seen"])
    async for _ in agent.stream("look", images=[png(1)]):
        pass
    assert len(image_messages(agent.messages)) == 1


async def test_images_that_cannot_be_used_are_misuse_and_nothing_is_started(settings: Settings, tmp_path: Path) -> None:
    agent = agent_of(settings, ["fine"])
    with pytest.raises(PictureError, match="No such file"):
        await agent.run("look", images=[tmp_path / "none.png"])
    with pytest.raises(PictureError, match="Picture 1"):
        await agent.run("look", images=[b"x"])
    with pytest.raises(ValueError, match="in words"):
        await agent.run(images=[png()])
    with pytest.raises(TypeError, match="list"):
        await agent.run("look", images=png())
    assert agent.messages == []
    assert (await agent.run("go")).output == "fine"


async def test_a_run_cancelled_while_its_images_are_decoded_ends_as_cancelled_and_keeps_them(
    settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "large.png").write_bytes(png(1, (3000, 3000)))
    agent = agent_of(settings, ["seen"])
    run = asyncio.create_task(agent.run("look", images=[tmp_path / "large.png"]))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="Cannot run agent from state: RUNNING"):
        await agent.run("meanwhile")
    agent.cancel()
    assert (await run).status is Status.CANCELLED
    assert agent.state is AgentState.IDLE
    assert (await agent.run()).output == "seen"
    assert [(m.content, len(m.images)) for m in agent.messages[:-1]] == [("look", 1)]


async def test_update_memory_checks_and_scales_an_image(settings: Settings) -> None:
    agent = agent_of(settings, [])
    agent.update_memory("user", "look", base64_image=png_base64(1, (4000, 40)))
    assert size_of(f"data:image/png;base64,{agent.messages[0].images[0].data}") == (2000, 20)
    with pytest.raises(PictureError, match="no picture"):
        agent.update_memory("user", "look", base64_image=base64.b64encode(b"text").decode())
    assert len(agent.messages) == 1


class Dies(BaseAgent):
    """Ends between a run's first event and its first message, as a crash would."""

    async def step(self) -> str:
        return "x"

    async def _settle(self, run: Any, request: str | None) -> str | None:
        raise ZeroDivisionError


async def test_a_request_that_a_crash_cut_off_comes_back_with_its_images(settings: Settings) -> None:
    for request, expected in ((None, [("look", 1)]), ("and?", [("look", 1), ("and?", 1)]), ("look", [("look", 1)])):
        async with Session.open(settings) as fresh:
            died = await Dies(session=fresh, settings=settings).run("look", images=[png(1)])
            assert died.status is Status.ERROR
            id = fresh.id
        async with Session.open(settings, id=id) as again:
            agent = agent_of(settings, ["seen"], session=again)
            await agent.run(request, images=[png(2)] if request == "and?" else ())
            assert [(m.content, len(m.images)) for m in agent.messages[:-1]] == expected
            assert all(image.data for m in agent.messages for image in m.images)


async def test_images_given_with_an_answer_to_a_question_follow_its_result(settings: Settings) -> None:
    script = [call("ask_human", inquire="Which one?"), "seen"]
    agent = agent_of(settings, script, AskHuman())
    assert (await agent.run("go")).status is Status.WAITING
    await agent.run("this one", images=[png(1)])
    [message] = image_messages(agent.messages)
    assert message.content == "Images given with the answer:"
    assert [m.role for m in agent.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER, Role.ASSISTANT]
