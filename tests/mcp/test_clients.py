"""Servers without an agent: a collection of their tools with a sandbox of its own (CONTRACT D12)."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from handwork import MCPClients, ToolCollection
from handwork.config import Settings
from handwork.errors import ConfigError, MCPUnavailable
from handwork.mcp.clients import MOST_NOTICES
from tests.mcp.place import STUB


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(STUB, tmp_path / "stub.py")
    return tmp_path


def clients_in(folder: Path) -> MCPClients:
    return MCPClients(workspace=folder, settings=Settings())


async def test_tools_of_several_servers_are_called_by_their_names(folder: Path) -> None:
    async with clients_in(folder) as clients:
        assert isinstance(clients, ToolCollection)
        await clients.connect_stdio(sys.executable, ["stub.py"], "one")
        await clients.connect_stdio(sys.executable, ["stub.py", "--tools", "echo,fail"], "two")
        assert set(clients.tool_map) == {"mcp_one_add", "mcp_one_echo", "mcp_two_echo", "mcp_two_fail"}
        assert list(clients.sessions) == ["one", "two"]
        assert str(await clients.execute("mcp_one_add", {"a": 1, "b": 2})) == "3"
        failed = await clients.execute("mcp_two_fail")
        assert failed.error == "Error executing tool: It went wrong"
        await clients.disconnect("one")
        assert set(clients.tool_map) == {"mcp_two_echo", "mcp_two_fail"}
    assert len(clients) == 0


async def test_a_server_runs_in_a_sandbox_that_sees_the_folder_and_ends_with_the_last_one(folder: Path) -> None:
    clients = clients_in(folder)
    await clients.connect_stdio(sys.executable, ["stub.py", "--tools", "environment"])
    tool = clients.tools[0]
    assert "HANDWORK" not in str(await tool())
    await clients.disconnect()
    result = await tool()
    assert result.error == "Not connected to MCP server"
    await clients.cleanup()


async def test_listing_the_tools_asks_the_servers_anew(folder: Path) -> None:
    async with clients_in(folder) as clients:
        await clients.connect_stdio(sys.executable, ["stub.py", "--tools", "change,echo"], "it")
        await clients.execute("mcp_it_change", {"how": "add"})
        assert [tool.name for tool in (await clients.list_tools()).tools] == ["added", "change", "echo"]
        assert "mcp_it_added" in clients


async def test_connecting_under_a_name_that_is_taken_ends_the_one_before(folder: Path) -> None:
    async with clients_in(folder) as clients:
        await clients.connect_stdio(sys.executable, ["stub.py"], "it")
        before = clients.sessions["it"]
        await clients.connect_stdio(sys.executable, ["stub.py", "--tools", "echo"], "it")
        assert before.state == "closed"
        assert set(clients.tool_map) == {"mcp_it_echo"}


async def test_what_cannot_be_connected_is_an_error_and_leaves_nothing(folder: Path) -> None:
    clients = clients_in(folder)
    with pytest.raises(ValueError, match="Server command is required"):
        await clients.connect_stdio("")
    with pytest.raises(ValueError, match="Server URL is required"):
        await clients.connect_sse("")
    with pytest.raises(ConfigError, match="MCP server it: "):
        await clients.connect("it", {"type": "pigeon"})
    with pytest.raises(MCPUnavailable, match="no-such-program"):
        await clients.connect_stdio("no-such-program")
    with pytest.raises(MCPUnavailable):
        await clients.connect("it", {"command": sys.executable, "args": ["stub.py"], "sandbox": False})
    assert dict(clients.sessions) == {}
    assert len(clients) == 0


async def test_two_calls_run_at_the_same_time(folder: Path) -> None:
    async with clients_in(folder) as clients:
        await clients.connect_stdio(sys.executable, ["stub.py", "--tools", "meet"], "it")
        results = await asyncio.gather(*(clients.execute("mcp_it_meet", {"n": 2}) for _ in range(2)))
        assert {str(result) for result in results} == {"met 2"}


async def test_notices_are_the_newest_however_much_servers_have_to_say(folder: Path) -> None:
    async with clients_in(folder) as clients:
        surroundings = clients._surroundings()
        for number in range(MOST_NOTICES + 5):
            surroundings.notify("warning", str(number))
        assert len(clients.notices) == MOST_NOTICES
        assert clients.notices[-1] == str(MOST_NOTICES + 4)
