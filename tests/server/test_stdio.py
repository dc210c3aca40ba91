"""`handwork mcp serve` as a program: what stands on which stream, and that nothing outlives its client."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from handwork.server.standard_io import Lines
from tests.cli.command import COMMAND, handwork, start
from tests.server.clients import MODES, Human, text_of
from tests.server.watching import until
from tests.support.strict_server import StrictServer, tool

pytestmark = pytest.mark.whole

SERVE = ("mcp", "serve")
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(id: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def alive(seconds: str) -> bool:
    """Whether a program sleeps for exactly so long, whoever its parent is."""
    return any(process.info["cmdline"] == ["sleep", seconds] for process in psutil.process_iter(["cmdline"]))


def unlike_any_other() -> str:
    """Seconds to sleep by which a program is known among those of other tests that run on this machine."""
    return str(1_000_000 + secrets.randbelow(1_000_000_000))


class Raw:
    """A client that writes bytes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def write(self, *messages: dict[str, Any] | list[Any] | bytes) -> None:
        assert self.process.stdin is not None
        for message in messages:
            self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")

    async def answer(self, id: int) -> dict[str, Any]:
        """The answer to a request; every line before it has to be a message, too."""
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            async for line in self.process.stdout:
                message: dict[str, Any] = json.loads(line)
                assert message["jsonrpc"] == "2.0"
                if message.get("id") == id:
                    return message
        raise AssertionError(f"no answer to {id}")


@asynccontextmanager
async def raw(workspace: Path, *arguments: str, **environ: str) -> AsyncIterator[Raw]:
    process = await start(*SERVE, *arguments, cwd=workspace, stdin=asyncio.subprocess.PIPE, **environ)
    try:
        yield Raw(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("mode", MODES)
async def test_another_program_drives_it(workspace: Path, home: Path, mode: str) -> None:
    human = Human({"answer": "blue"})
    async with StrictServer([tool("ask_human", inquire="Which colour?"), "It is blue."]) as model:
        arguments = [*COMMAND[1:], *SERVE, "--workspace", str(workspace), "--base-url", model.url]
        server = StdioServerParameters(
            command=COMMAND[0], args=[*arguments, "--model", "openai:any"], env=dict(os.environ)
        )
        async with Client(stdio_client(server), mode=mode, elicitation_callback=human) as client:
            assert len((await client.list_tools()).tools) == 6
            assert text_of(await client.call_tool("bash", {"command": "pwd"})) == f"{workspace}\n"
            assert text_of(await client.call_tool("run_task", {"task": "Paint it."})) == "It is blue."
        assert not model.refused
    assert human.asked == ["Which colour?"]


async def test_only_messages_stand_on_standard_output_and_the_end_of_input_ends_it(workspace: Path) -> None:
    async with raw(workspace) as client:
        client.write(HELLO, READY, call(2, "python_execute", code="import os; print('out'); os.system('echo direct')"))
        assert "out" in (await client.answer(2))["result"]["content"][0]["text"]
        descriptors = Path(f"/proc/{client.process.pid}/fd")
        assert [(descriptors / "0").readlink(), (descriptors / "1").readlink()] == [
            Path(os.devnull),
            (descriptors / "2").readlink(),
        ], "whatever prints in this process does not meet the wire"
        assert client.process.stdin is not None
        client.process.stdin.close()
        out, err = await asyncio.wait_for(client.process.communicate(), 20)
    assert (out, err, client.process.returncode) == (b"", b"", 0)


async def test_what_is_no_message_is_skipped_and_the_server_lives(workspace: Path) -> None:
    async with raw(workspace) as client:
        client.write(b"garbage\n", b"\n", b"\xff\xfe\x00\n", b"[" * 10_000 + b"\n", b'{"jsonrpc": "2.0"}\n')
        client.write(HELLO)
        assert client.process.stdout is not None
        refused = [json.loads(await client.process.stdout.readline()) for _ in range(4)]
        assert [(each["id"], each["error"]["code"]) for each in refused] == [(None, -32700)] * 3 + [(None, -32600)]
        assert (await client.answer(1))["result"]["serverInfo"]["name"] == "handwork"
        client.write(READY, [call(3, "bash", command="echo batch")], b"{}\n", b"null\n")
        client.write({**call(9, "planning", command="list"), "id": None}, {**call(10, "bash"), "params": [1]})
        assert (await client.answer(10))["error"]["code"] == -32600, "nobody waits for ever"
        big = "x" * 5_000_000
        client.write({**call(4, "bash", command="echo", more=big)})
        assert (await client.answer(4))["result"]["isError"]
        client.write(call(6, "bash", command="echo half \ud800 pair"))
        assert (await client.answer(6))["result"]["content"][0]["text"] == "half \ufffd pair\n"
        client.write(call(5, "planning", command="list"))
        assert not (await client.answer(5))["result"].get("isError")


async def test_a_call_before_the_handshake_is_refused_and_unknown_methods_too(workspace: Path) -> None:
    async with raw(workspace) as client:
        client.write(call(7, "bash", command="touch made"))
        assert "error" in await client.answer(7)
        client.write({**HELLO, "id": 8}, {"jsonrpc": "2.0", "id": 9, "method": "no/such"})
        assert "result" in await client.answer(8)
        assert (await client.answer(9))["error"]["code"] == -32601
    assert not (workspace / "made").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_good_order_while_a_call_runs(workspace: Path, number: signal.Signals) -> None:
    seconds = unlike_any_other()
    async with raw(workspace) as client:
        client.write(HELLO, READY, call(2, "bash", command=f"sleep {seconds}"))
        await until(lambda: alive(seconds))
        client.process.send_signal(number)
        assert await asyncio.wait_for(client.process.wait(), 15) == 0
    assert not alive(seconds)


async def test_a_client_that_reads_nothing_cannot_hold_up_the_end(workspace: Path) -> None:
    async with raw(workspace) as client:
        client.write(HELLO, READY, *(call(n, "bash", command="seq 1500") for n in range(2, 60)))
        await client.answer(1)
        client.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(client.process.wait(), 15) == 0


async def test_a_client_that_does_not_read_standard_error_is_served_and_holds_up_nothing(workspace: Path) -> None:
    async with raw(workspace) as client:
        client.write(b"garbage\n" * 8_000, HELLO)  # each line is told there
        assert "result" in await client.answer(1)
        client.process.send_signal(signal.SIGTERM)
        await until(lambda: client.process.returncode == 0)


CLIENT = """
import json, subprocess, sys, time
leak, *command = sys.argv[1:]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
if leak == "leak":  # a child that holds the server's standard input open
    nothing = subprocess.DEVNULL
    subprocess.Popen(["sleep", "600"], pass_fds=[server.stdin.fileno()], stdin=nothing, stdout=nothing, stderr=nothing)
for message in json.load(sys.stdin):
    server.stdin.write(json.dumps(message).encode() + b"\\n")
server.stdin.flush()
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("leak", ["", "leak"])
async def test_a_client_that_is_killed_leaves_nothing(workspace: Path, leak: str) -> None:
    seconds = unlike_any_other()
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLIENT, leak, *COMMAND, *SERVE),
        cwd=workspace,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(json.dumps([HELLO, READY, call(2, "bash", command=f"sleep {seconds}")]).encode())
    client.stdin.close()
    server = psutil.Process(int(await client.stdout.readline()))
    children = psutil.Process(client.pid).children(recursive=True)
    try:
        await until(lambda: alive(seconds))
        client.kill()
        await client.wait()
        await until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)
        await until(lambda: not alive(seconds))
    finally:
        for process in (*children, server):
            with suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--tools", "bahs"), "--tools: there is no tool named 'bahs'\n→ did you mean bash?"),
        (("--tools", ","), "--tools names no tool"),
        (("--port", "1"), "--host, --port and --token-file belong to --transport http"),
        (("--workspace", "/etc/passwd"), "is no folder"),
    ],
)
async def test_what_is_wrong_is_said_before_anything_is_served(
    workspace: Path, arguments: tuple[str, ...], words: str
) -> None:
    ended = await handwork(*SERVE, *arguments, cwd=workspace, stdin="")
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err


async def test_over_http_the_one_line_that_is_printed_says_where_and_never_the_token(
    workspace: Path, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    process = await start(*SERVE, "--transport", "http", "--token-file", str(token), cwd=workspace)
    assert process.stderr is not None
    line = (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
    process.terminate()
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out, err) == (0, b"", b"")
    assert line.startswith("handwork: Serving MCP at http://127.0.0.1:")
    assert f"(bearer token made just now in {token})" in line
    assert token.read_text().strip() not in line


async def test_a_line_that_is_too_long_is_skipped_to_its_end() -> None:
    source, target = os.pipe()
    lines = Lines(source, longest=100_000)
    writing = asyncio.create_task(asyncio.to_thread(_write, target, b"a\n" + b"x" * 300_000 + b"\nb\n\nlast"))
    assert [line async for line in lines] == [b"a", b"b", b"", b"last"]
    assert lines.skipped == 1
    await writing
    os.close(source)


def _write(target: int, data: bytes) -> None:
    with os.fdopen(target, "wb") as opened:
        opened.write(data)
