"""Clients of npm drive `handwork mcp serve`: the TypeScript SDK and an implementation of its own, both eras, both transports."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from handwork.config import load_settings
from handwork.server.house import House, chosen
from tests.server.clients import serving
from tests.support.node import driver, node, script
from tests.support.strict_server import StrictServer, tool

pytestmark = pytest.mark.slow
clients = pytest.mark.parametrize("client", ["sdk_client.mjs", "ai_client.mjs"])
eras = pytest.mark.parametrize("mode", ["legacy", "auto"])
transports = pytest.mark.parametrize("transport", ["stdio", "http"])


@asynccontextmanager
async def served(transport: str, folder: Path, model: str = "") -> AsyncIterator[dict[str, Any]]:
    """How a client reaches our server, as a part of its plan."""
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    if transport == "stdio":
        asked = ["--model", "openai:any", "--base-url", model] if model else []
        arguments = ["-m", "handwork", "mcp", "serve", "--workspace", str(workspace), *asked]
        _, environ = driver("")
        yield {"stdio": {"command": sys.executable, "args": arguments, "env": environ}}
        return
    llm = {"model": "openai:any", "base_url": model} if model else {}
    settings = load_settings(workspace=workspace, overrides={"llm": llm}, trusted=False)
    async with serving(House(settings, workspace, chosen(None), lambda text: None), folder) as (url, token):
        yield {"url": url, "headers": {"Authorization": f"Bearer {token}"}}


async def carried_out(client: str, plan: dict[str, Any]) -> list[dict[str, Any]]:
    """What the client tells of each step."""
    script("conformance")  # skips where the packages are not installed
    program, environ = driver(client)
    process = await asyncio.create_subprocess_exec(
        node(), program, json.dumps(plan), env=environ, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await asyncio.wait_for(process.communicate(), 100)
    told = [json.loads(line) for line in said.splitlines()]
    assert told, "the client said nothing"
    assert told.pop() == {"step": "end"}
    return told


def text_of(step: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in step["result"]["content"] if part["type"] == "text")


@clients
@eras
@transports
async def test_it_lists_our_tools_calls_them_and_sees_what_goes_wrong(
    client: str, mode: str, transport: str, tmp_path: Path
) -> None:
    steps = [
        {"connect": True},
        {"list": True},
        {"call": {"name": "bash", "arguments": {"command": "echo made by a client > note; cat note"}}},
        {"call": {"name": "bash", "arguments": {"comand": "ls"}}},
        {"call": {"name": "python_execute", "arguments": {"code": "1/0"}}},
        {"call": {"name": "bsh", "arguments": {}}},
        {"close": True},
    ]
    async with served(transport, tmp_path) as place:
        connect, listed, called, wrong, broken, unknown, closed = await carried_out(
            client, {**place, "mode": mode, "steps": steps}
        )
    assert connect["server"]["name"] == "handwork"
    hurried = (client, transport) == ("ai_client.mjs", "stdio")  # it gives a program one second, then begins as in 2025
    assert connect["protocol"] in {"2026-07-28" if mode == "auto" else "2025-11-25", "2025-11-25" if hurried else ""}
    hints = {each["name"]: each["annotations"] for each in listed["tools"]}
    assert hints["search_files"]["readOnlyHint"] is True
    assert hints["bash"]["readOnlyHint"] is False
    assert text_of(called).startswith("made by a client\n")
    assert not called["result"].get("isError")
    assert (tmp_path / "workspace" / "note").read_text() == "made by a client\n"
    assert wrong["result"]["isError"]
    assert "command" in text_of(wrong)
    assert broken["result"]["isError"]
    assert "ZeroDivisionError" in text_of(broken)
    assert "bash" in str(unknown)  # the nearest name, as an error or an answer
    assert unknown.get("error") or unknown["result"]["isError"]
    assert "error" not in closed


@transports
@eras
async def test_progress_reaches_it_and_its_cancel_reaches_us(mode: str, transport: str, tmp_path: Path) -> None:
    slow = "echo begun; sleep 300; echo never > never"
    steps = [
        {"connect": True},
        {"call": {"name": "bash", "arguments": {"command": slow}, "cancelled": True}},
        {"call": {"name": "bash", "arguments": {"command": "echo again"}}},
    ]
    async with served(transport, tmp_path) as place:
        _, cancelled, after = await carried_out("sdk_client.mjs", {**place, "mode": mode, "steps": steps})
    assert "enough" in cancelled["error"]
    assert text_of(after).startswith("again\n")


@clients
@eras
@transports
async def test_its_user_answers_what_our_agent_asks(client: str, mode: str, transport: str, tmp_path: Path) -> None:
    steps = [{"connect": True}, {"call": {"name": "run_task", "arguments": {"task": "Paint it."}}}]
    async with StrictServer([tool("ask_human", inquire="Which colour?"), "It is blue now."]) as model:
        async with served(transport, tmp_path, model.url) as place:
            told = await carried_out(client, {**place, "mode": mode, "answers": ["blue"], "steps": steps})
        assert len(model.requests) == 2, told
        assert "blue" in json.dumps(model.requests[1]["messages"])
    asked = [step for step in told if "asked" in step]
    assert len(asked) == 1
    assert "Which colour?" in asked[0]["asked"]
    assert text_of(told[-1]) == "It is blue now."


@clients
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Origin": "https://elsewhere.example"},
    ],
    ids=["no token", "a wrong token", "a foreign origin"],
)
async def test_it_is_refused_without_the_token_or_from_elsewhere(
    client: str, headers: dict[str, str], tmp_path: Path
) -> None:
    steps = [{"connect": True}, {"call": {"name": "bash", "arguments": {"command": "touch trace"}}}]
    async with served("http", tmp_path) as place:
        if "Origin" in headers:
            headers = {**place["headers"], **headers}
        connect, called = await carried_out(client, {**place, "headers": headers, "steps": steps})
    assert "error" in connect
    assert "error" in called
    assert not (tmp_path / "workspace" / "trace").exists()
