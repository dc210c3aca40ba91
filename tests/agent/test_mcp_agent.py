"""MCPAgent: the tools of exactly one server under their own names, and terminate (CONTRACT C4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handwork import MCPAgent
from handwork.agent.roles import load_role
from handwork.config import MCPSettings, Settings
from handwork.errors import ConfigError, MCPUnavailable
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Request, Status
from tests.agent.conftest import Seen
from tests.agent.servers import STUB, Door, configured, described, notices, stub


def agent_of(script: Any, workspace: Path, *options: str, **fields: Any) -> MCPAgent:
    return MCPAgent(llm=ScriptedModel(script), mcp_servers={"stub": stub(workspace, *options)}, **fields)


def requests(agent: MCPAgent) -> list[Request]:
    assert isinstance(agent.llm, ScriptedModel)
    return agent.llm.requests


def names(request: Request) -> list[str]:
    return list(described(request))


def observations(agent: MCPAgent) -> list[str]:
    return [message.content or "" for message in agent.messages if message.role == "tool"]


def notes(agent: MCPAgent) -> list[str]:
    return [message.content or "" for message in agent.messages if message.role == "user"][1:]


def test_the_role_has_its_names() -> None:
    assert {load_role(name) for name in ("mcp", "MCP", "mcp_agent", "MCPAgent")} == {MCPAgent}
    assert MCPAgent.max_steps == 20


async def test_the_servers_tools_keep_their_names_and_a_note_lists_them(settings: Settings, tmp_path: Path) -> None:
    agent = agent_of([call("echo", text="hello"), call("terminate", status="success")], tmp_path)
    result = await agent.run("go")
    assert result.status is Status.FINISHED
    assert names(requests(agent)[0]) == ["add", "echo", "terminate"]
    assert notes(agent) == ["Available MCP tools: add, echo"]
    assert observations(agent)[0] == "Observed output of cmd `echo` executed:\nhello"
    assert str(tmp_path) in (requests(agent)[0].system or "")


async def test_our_terminate_hides_the_servers_and_always_ends_the_run(settings: Settings, tmp_path: Path) -> None:
    agent = agent_of([call("terminate", status="failure")], tmp_path, "--tools", "terminate,Terminate,echo")
    result = await agent.run("go")
    assert result.status is Status.FAILED
    assert names(requests(agent)[0]) == ["echo", "terminate"]
    assert "The interaction has been completed with status: failure" in observations(agent)[0]


async def test_a_special_tool_that_is_not_terminate_does_not_end_the_run(settings: Settings, tmp_path: Path) -> None:
    agent = agent_of([call("echo", text="x"), "done"], tmp_path, special_tool_names=["terminate", "echo"])
    await agent.run("go")
    assert len(requests(agent)) == 2


async def test_a_name_that_no_provider_takes_becomes_one_that_they_take(settings: Settings, tmp_path: Path) -> None:
    agent = agent_of(["done"], tmp_path, "--tools", "a.b,echo")
    await agent.run("go")
    assert len(names(requests(agent)[0])) == 3
    assert all(name.replace("_", "").isalnum() for name in names(requests(agent)[0]))


# ---- initialize


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"connection_type": "sse"}, "Server URL is required for SSE connection"),
        ({"connection_type": "stdio"}, "Command is required for stdio connection"),
        ({"connection_type": "carrier pigeon"}, "Unsupported connection type: carrier pigeon"),
        ({"server_url": "http://x/sse"}, "Command is required for stdio connection"),
    ],
)
async def test_initialize_says_what_is_missing(settings: Settings, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        await MCPAgent(llm=ScriptedModel([])).initialize(**arguments)


async def test_initialize_connects_at_once_and_keeps_it_until_cleanup(settings: Settings, tmp_path: Path) -> None:
    server = stub(tmp_path)
    agent = MCPAgent(llm=ScriptedModel(["done", "done"]))
    await agent.initialize("stdio", command=server.command, args=list(server.args))
    try:
        assert set(agent.available_tools.tool_map) == {"add", "echo", "terminate"}
        await agent.run("go")
        await agent.run("go on")
        said = [message.content for message in agent.messages if message.role == "user"]
        assert said == ["Available MCP tools: add, echo", "go", "go on"]
    finally:
        await agent.cleanup()
    assert set(agent.available_tools.tool_map) == {"terminate"}


async def test_initialize_raises_where_nobody_is_and_so_does_create(settings: Settings) -> None:
    agent = MCPAgent(llm=ScriptedModel([]))
    with pytest.raises(MCPUnavailable, match="no-such-program"):
        await agent.initialize("stdio", command="no-such-program")
    await agent.cleanup()
    with pytest.raises(MCPUnavailable):
        await MCPAgent.create(llm=ScriptedModel([]), mcp_servers={"dead": {"url": "http://127.0.0.1:9/mcp"}})


# ---- which server


async def test_without_a_name_it_takes_the_first_configured_server_and_says_so(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    both = configured(one=stub(tmp_path, "--tools", "echo"), two=stub(tmp_path))
    agent = MCPAgent(llm=ScriptedModel(["done"]), settings=both)
    await agent.run("go", listener=seen)
    assert names(requests(agent)[0]) == ["echo", "terminate"]
    assert notices(seen) == ["The agent mcp works with the MCP server one, not with two."]


async def test_two_named_servers_are_one_too_many(settings: Settings, tmp_path: Path) -> None:
    named = {"one": stub(tmp_path), "two": stub(tmp_path)}
    result = await MCPAgent(llm=ScriptedModel([]), mcp_servers=named).run("go")
    assert isinstance(result.error, ConfigError)
    assert "works with one MCP server, and several are named: one, two" in str(result.error)


async def test_without_any_server_it_starts_the_module_of_the_configuration_in_the_sandbox(
    settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(STUB.read_text())
    agent = MCPAgent(llm=ScriptedModel(["done"]), settings=Settings(mcp=MCPSettings(server_reference="mine")))
    await agent.run("go")
    assert names(requests(agent)[0]) == ["add", "echo", "terminate"]


async def test_openmanus_module_is_our_own_server_beside_the_sandbox(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    (tmp_path / "handwork.py").write_text("raise SystemExit('a module of the workspace was taken for ours')")
    (tmp_path / "note.txt").write_text("of the workspace")
    agent = MCPAgent(llm=ScriptedModel([call("bash", command="cat note.txt"), "done"]))
    result = await agent.run("go", listener=seen)
    assert result.status is Status.FINISHED, result
    assert {"bash", "python_execute", "str_replace_editor", "terminate"} <= set(names(requests(agent)[0]))
    assert "of the workspace" in observations(agent)[0]


# ---- changes


async def test_changes_are_told_to_the_model_and_change_what_can_be_called(settings: Settings, tmp_path: Path) -> None:
    agent = agent_of(
        [call("change", how="add"), call("added"), call("change", how="remove"), call("added"), "done"],
        tmp_path,
        *("--tools", "change,echo"),
    )
    await agent.run("go")
    assert notes(agent) == [
        "Available MCP tools: change, echo",
        "New tools available: added",
        "Tools no longer available: added",
    ]
    assert "added done" in observations(agent)[1]
    assert "Unknown tool 'added'" in observations(agent)[3]


async def test_every_fifth_step_asks_for_the_list_whether_the_server_said_something_or_not(
    settings: Settings, tmp_path: Path
) -> None:
    door = Door("allow")
    script = [call("change", how="quietly"), *(call("echo", text=f"{n}") for n in range(4)), "done"]
    agent = agent_of(script, tmp_path, "--tools", "change,echo", approve=door)
    await agent.run("go")
    shown = [str(request.tools[0]) for request in requests(agent)]
    assert ["Does something else now." in each for each in shown] == [False] * 4 + [True] * 2
    assert len(door.asked) == 1


async def test_a_server_that_loses_all_its_tools_ends_the_run_as_finished_with_a_notice(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    agent = agent_of([call("change", how="remove")], tmp_path, "--tools", "change")
    result = await agent.run("go", listener=seen)
    assert result.status is Status.FINISHED
    assert notices(seen) == [
        "The MCP server stub offers no tools that can be used: there is nothing left to work with."
    ]
    assert notes(agent)[-1] == "Tools no longer available: change"


@pytest.mark.slow
async def test_a_server_that_is_gone_for_good_ends_the_run_as_finished_with_one_notice(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    def vanish(request: Request) -> Any:
        (tmp_path / "stub.py").write_text("raise SystemExit('broken now')")
        return call("die", code=9)

    def wait(request: Request) -> Any:
        return call("echo", text="anybody?")

    agent = agent_of([vanish, *[wait] * 15], tmp_path, "--tools", "die,echo")
    result = await agent.run("go", listener=seen)
    assert result.status is Status.FINISHED, result
    (notice,) = notices(seen)
    assert "There is nothing left to work with." in notice


async def test_a_server_that_was_never_there_is_an_error(settings: Settings, seen: Seen) -> None:
    agent = MCPAgent(llm=ScriptedModel([]), mcp_servers={"gone": {"command": "no-such-program"}})
    result = await agent.run("go", listener=seen)
    assert result.status is Status.ERROR
    assert isinstance(result.error, MCPUnavailable)
    assert notices(seen) == []  # the error says it


async def test_that_a_server_was_there_in_an_earlier_session_makes_it_no_less_an_error(
    settings: Settings, tmp_path: Path
) -> None:
    servers = configured(stub=stub(tmp_path))
    await MCPAgent(llm=ScriptedModel(["done"]), settings=servers).run("go")
    (tmp_path / "stub.py").write_text("raise SystemExit(3)")
    result = await MCPAgent(llm=ScriptedModel(["done"]), settings=servers).run("go")
    assert result.status is Status.ERROR, result
    assert isinstance(result.error, MCPUnavailable)


# ---- pictures


async def test_a_picture_is_shown_and_the_model_is_asked_to_look_at_it(settings: Settings, tmp_path: Path) -> None:
    agent = agent_of([call("picture"), "seen", "later"], tmp_path, "--tools", "picture")
    await agent.run("go")
    second = requests(agent)[1]
    assert any(message.images for message in second.messages)
    assert second.tail is not None
    assert "The tool `picture` answered with a picture" in second.tail.text
    await agent.run("and now")
    tail = requests(agent)[2].tail
    assert tail is None or "picture" not in tail.text
    assert not any("answered with a picture" in (message.content or "") for message in agent.messages)
