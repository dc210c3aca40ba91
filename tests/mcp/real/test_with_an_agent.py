"""`handwork run` with servers that nobody here wrote, all at once, and a scripted model that uses each of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Ended, handwork
from tests.support.node import MODULES, node, script
from tests.support.strict_server import StrictServer, tool

pytestmark = pytest.mark.slow


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "notes.txt").write_text("the notes of the project\n")
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(folder)], check=True)
    return folder


def _servers(workspace: Path) -> dict[str, Any]:
    programs = Path(sys.executable).parent
    paths = [str(MODULES)]
    chromium = shutil.which("chromium") or "chromium"
    browser = ["--headless", "--isolated", "--no-sandbox", "--executable-path", chromium]
    return {
        "time": {"command": str(programs / "mcp-server-time")},
        "git": {"command": str(programs / "mcp-server-git")},
        "files": {"command": node(), "args": [script("filesystem"), str(workspace)], "paths": paths},
        "all": {"command": node(), "args": [script("everything")], "paths": paths},
        "browser": {"command": node(), "args": [script("playwright"), *browser], "paths": paths},
    }


def _leaving_a_trace(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """The same server, which leaves a file in the workspace when it starts."""
    program = [entry["command"], *entry.get("args", [])]
    return {**entry, "command": "/bin/sh", "args": ["-c", 'touch "$0.started"; exec "$@"', name, *program]}


def _started(workspace: Path) -> list[str]:
    """The servers that left a trace since the last look."""
    traces = sorted(workspace.glob("*.started"))
    for trace in traces:
        trace.unlink()
    return [trace.stem for trace in traces]


async def _run(
    workspace: Path, home: Path, servers: dict[str, Any], script: list[Any], *more: str
) -> tuple[Ended, list[dict[str, Any]]]:
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    async with StrictServer(script) as model:
        answers = ("--base-url", model.url, "--model", "openai:any")
        ended = await handwork("run", "Use them all.", *answers, *more, cwd=workspace)
        assert not model.refused
        return ended, model.requests


def _results(requests: list[dict[str, Any]]) -> dict[str, str]:
    """What the model saw of each tool."""
    names = {
        call["id"]: call["function"]["name"]
        for message in requests[-1]["messages"]
        for call in message.get("tool_calls") or []
    }
    return {
        names[message["tool_call_id"]]: str(message["content"])
        for message in requests[-1]["messages"]
        if message["role"] == "tool"
    }


async def test_the_model_uses_five_servers_in_one_run(workspace: Path, home: Path) -> None:
    script = [
        {
            "tool_calls": [
                tool("mcp_time_get_current_time", timezone="Asia/Tokyo"),
                tool("mcp_git_git_status", repo_path=str(workspace)),
                tool("mcp_files_read_text_file", path=str(workspace / "notes.txt")),
                tool("mcp_all_get-sum", a=40, b=2),
                tool("mcp_browser_browser_navigate", url="data:text/html,<h1>Hello</h1>"),
            ]
        },
        {"tool_calls": [tool("mcp_browser_browser_snapshot"), tool("mcp_files_read_text_file", path="/etc/hostname")]},
        "All were used.",
    ]
    ended, requests = await _run(workspace, home, _servers(workspace), script)
    assert (ended.code, ended.out) == (0, "All were used.\n"), ended.err
    seen = _results(requests)
    assert "+09:00" in seen["mcp_time_get_current_time"]
    assert "notes.txt" in seen["mcp_git_git_status"]
    assert "is 42" in seen["mcp_all_get-sum"]
    assert "Hello" in seen["mcp_browser_browser_snapshot"]
    assert "outside allowed directories" in seen["mcp_files_read_text_file"]
    assert "!" not in {line[:1] for line in ended.err.splitlines()}, ended.err  # no warning


async def test_the_second_run_starts_only_the_servers_that_it_uses(workspace: Path, home: Path) -> None:
    servers = {name: _leaving_a_trace(name, entry) for name, entry in _servers(workspace).items()}
    await _run(workspace, home, servers, ["I know them now."])
    assert _started(workspace) == ["all", "browser", "files", "git", "time"]
    used = [tool("mcp_time_get_current_time", timezone="Asia/Tokyo"), "Done."]
    ended, requests = await _run(workspace, home, servers, used)
    assert (ended.code, ended.out) == (0, "Done.\n"), ended.err
    shown = {each["function"]["name"] for each in requests[0]["tools"]}
    assert {"mcp_all_echo", "mcp_browser_browser_click", "mcp_git_git_log"} <= shown
    assert "+09:00" in _results(requests)["mcp_time_get_current_time"]
    assert _started(workspace) == ["time"]
