"""What MCP servers cost: a call beside the mcp package's own client, a start with servers that nobody uses, a server in the sandbox.

As a program it prints one JSON object, in milliseconds: `mcp_call` is what a call of ours takes longer than one of the
package's client, both medians of the same run and server; `mcp_start` is the CPU time that ten configured servers with kept
definitions add to a run that uses none; `mcp_ready` is a server of a warm session from nothing to its lists; `mcp_serve` is the
CPU time of `handwork mcp serve` from its start over the list of its tools to its end.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from handwork import Manus, ScriptedModel, Session
from handwork.config import MCPServerSettings, MCPSettings, Settings, load_settings

_CALLS, _FIRST, _STARTS, _READY, _SERVERS = 200, 5, 9, 7, 10
_SERVER = """
import json, sys
TOOL = {"name": "echo", "description": "Say it again.", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "bench", "version": "1"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answers = {"initialize": HELLO, "tools/list": {"tools": [TOOL]}, "ping": {}}
    if asked["method"] == "tools/call":
        answers["tools/call"] = {"content": [{"type": "text", "text": asked["params"]["arguments"]["text"]}]}
    found = answers.get(asked["method"])
    told = {"result": found} if found is not None else {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), flush=True)
"""
"""A server that costs next to nothing, so that the clients are what is measured."""


def _settings(folder: Path, count: int) -> Settings:
    servers = {
        f"bench{number}": MCPServerSettings(command=sys.executable, args=("-c", _SERVER), env={"NUMBER": str(number)})
        for number in range(count)
    }
    return load_settings(workspace=folder).model_copy(update={"mcp": MCPSettings(servers=servers)})


async def _ms(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


async def _calls(folder: Path) -> float:
    """By turns, so that what else the machine does meets both."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    ours, theirs = list[float](), list[float]()
    async with Manus(llm=ScriptedModel([]), workspace=folder, settings=_settings(folder, 1)) as agent:
        await agent.initialize_mcp_servers()
        tool = agent.available_tools.get_tool("mcp_bench0_echo")
        assert tool is not None
        async with Client(StdioServerParameters(command=sys.executable, args=["-c", _SERVER])) as client:
            for number in range(_CALLS + _FIRST):
                text = f"number {number}"
                ours.append(await _ms(partial(tool.execute, text=text)))
                theirs.append(await _ms(partial(client.call_tool, "echo", {"text": text})))
    return statistics.median(ours[_FIRST:]) - statistics.median(theirs[_FIRST:])


async def _ready(folder: Path) -> float:
    """Each time another server of one session, whose sandbox runs."""
    settings = _settings(folder, _READY)
    async with Session.open(settings, folder) as session:
        await session.sandbox.stat(".")
        spent = [
            await _ms(session.servers.connection(name, entry).ready) for name, entry in settings.mcp.servers.items()
        ]
    return statistics.median(spent)


async def _run(folder: Path, count: int) -> None:
    """A run that needs no tool, with so many servers configured."""
    agent = Manus(llm=ScriptedModel(["Done."]), workspace=folder, settings=_settings(folder, count))
    result = await agent.run("Say that you are done.")
    assert str(result.status) == "finished", result
    shown = [tool for tool in agent.llm.requests[0].tools if tool["function"]["name"].startswith("mcp_")]
    assert len(shown) == count, f"{len(shown)} tools of {count} servers"


def _start(folder: Path) -> float:
    """Whole processes, by turns with and without; the first one learns what the servers offer and is not counted."""

    def once(count: int) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, __file__, str(folder), str(count)], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    once(_SERVERS)
    pairs = [(once(_SERVERS), once(0)) for _ in range(_STARTS)]
    return statistics.median(some - none for some, none in pairs)


def _serve(folder: Path) -> float:
    """A client of the handshake era, which then leaves."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    asked: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    command = [sys.executable, "-m", "handwork", "mcp", "serve", "--workspace", str(folder)]

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in asked))
            server.stdin.flush()
            answers = [server.stdout.readline() for _ in range(2)]
            server.stdin.close()
        assert b"run_task" in answers[1], answers
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000

    return statistics.median(once() for _ in range(_READY))


def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="handwork-bench-") as place:
        folder = Path(place) / "workspace"
        folder.mkdir()
        return {
            "mcp_call": asyncio.run(_calls(folder)),
            "mcp_ready": asyncio.run(_ready(folder)),
            "mcp_start": _start(folder),
            "mcp_serve": _serve(folder),
        }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(_run(Path(sys.argv[1]), int(sys.argv[2])))
    else:
        print(json.dumps(measure()))
