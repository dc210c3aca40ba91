"""MCP servers in a chat: /mcp, their tools in /tools, and their prompts as commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.chat.window import Window
from tests.mcp import stub
from tests.support.strict_server import StrictServer


@pytest.fixture
def script(workspace: Path) -> str:
    file = workspace / "stub.py"
    file.write_bytes(Path(stub.__file__ or "").read_bytes())
    return str(file)


def configure(home: Path, **servers: list[str]) -> None:
    entries = {name: {"command": sys.executable, "args": args} for name, args in servers.items()}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": entries}))


def words_of(request: dict[str, Any]) -> list[str]:
    return [message["content"] for message in request["messages"] if message["role"] == "user"]


async def test_servers_and_their_tools_are_shown_and_one_that_is_gone_says_why(
    workspace: Path, home: Path, script: str
) -> None:
    configure(home, good=[script], bad=[script, "--die", "3"])
    async with StrictServer(["Hello."]) as server:
        window = await Window.chat(server, cwd=workspace, rows=60, columns=120)
        await window.send("/mcp")
        await window.shows("  bad   ")
        await window.send("hello")
        await window.shows("finished")
        await window.send("/mcp")
        await window.shows("  good  connected · 2 tools")
        await window.until(lambda: "exit code 3" in window.text)
        await window.send("/tools")
        await window.shows("Of the MCP server good:\n  mcp_good_add")
        assert await window.leave() == 0


async def test_resources_are_counted_and_a_server_that_has_none_is_not_said_to_have_some(
    workspace: Path, home: Path, script: str
) -> None:
    configure(home, some=[script, "--resources"], none=[script, "--no-resources"])
    async with StrictServer([]) as server:
        window = await Window.chat(server, cwd=workspace, rows=60, columns=120)
        await window.until(lambda: "connecting" not in window.status and "openai:any" in window.status)
        await window.send("/mcp")
        await window.shows("  some  connected · 2 tools, 2 resources")
        assert "  none  connected · 2 tools\n" in "\n".join(line.rstrip() for line in window.text.splitlines()) + "\n"
        assert await window.leave() == 0


async def test_without_servers_that_is_said(workspace: Path) -> None:
    async with StrictServer([]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("/mcp")
        await window.shows("No MCP server is configured: handwork mcp add")
        assert await window.leave() == 0


async def test_a_prompt_of_a_server_is_completed_and_becomes_a_request(
    workspace: Path, home: Path, script: str
) -> None:
    configure(home, it=[script, "--prompts"])
    async with StrictServer(["Done."]) as server:
        window = await Window.chat(server, cwd=workspace, rows=60)
        await window.until(lambda: "connecting" not in window.status and "openai:any" in window.status)
        window.type("/it")
        await window.shows("/it:greet")
        window.type("\x03")
        await window.send("/help")
        await window.shows("of MCP servers; Tab completes them")
        await window.send("/it:nothing")
        await window.shows("✗ The server it has no prompt 'nothing'")
        window.type("\x03")
        await window.until(lambda: window.prompt == ">")
        await window.send("/it:greet")
        await window.shows("✗ it:greet needs who (Whom to greet)")
        window.type("\x03")
        await window.until(lambda: window.prompt == ">")
        await window.send("/it:greet Ada Lovelace")
        await window.shows("finished")
        assert await window.leave() == 0
    assert "Greet Ada Lovelace" in words_of(server.requests[0])


async def test_words_with_a_colon_that_name_no_server_stay_a_message(workspace: Path) -> None:
    async with StrictServer(["Yes."]) as server:
        window = await Window.chat(server, cwd=workspace)
        await window.send("/is:this a message?")
        await window.shows("finished")
        assert await window.leave() == 0
    assert len(server.requests) == 1


async def test_a_server_is_named_on_the_command_line_and_again_in_what_is_typed_to_go_on(
    workspace: Path, script: str
) -> None:
    async with StrictServer(["Hello."]) as server:
        command = f"{sys.executable} {script}"
        window = await Window.chat(server, "--mcp", command, cwd=workspace, rows=60, columns=200)
        await window.send("hello")
        await window.shows("finished")
        await window.send("/mcp")
        await window.shows("  stub  connected · 2 tools")
        assert await window.leave() == 0
    assert f"--mcp '{command}'" in window.text.replace("\n", "")


async def test_after_a_new_conversation_the_line_of_facts_says_when_servers_are_connected_without_a_key(
    workspace: Path, home: Path, script: str, tmp_path: Path
) -> None:
    go = workspace / "go"
    late = workspace / "late.py"
    late.write_text(
        f"import os, sys, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.02)\n"
        f"os.execv(sys.executable, [sys.executable, {script!r}])\n"
    )
    async with StrictServer([]) as server:
        command = f"{sys.executable} {late}"  # nothing is remembered of it, so each conversation connects
        window = await Window.chat(server, "--mcp", command, cwd=workspace, columns=120)
        await window.until(lambda: "connecting 1 server" in window.status)
        go.touch()
        await window.until(lambda: "openai:any" in window.status and "connecting" not in window.status)
        go.unlink()
        await window.send("/new")
        await window.shows("A new conversation")
        await window.until(lambda: "connecting 1 server" in window.status)
        go.touch()
        await window.until(lambda: "openai:any" in window.status and "connecting" not in window.status)
        assert await window.leave() == 0
