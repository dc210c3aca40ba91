"""A run whose programs want to reach hosts: what the model reads, what people see and are asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import SandboxSettings, Settings
from handwork.errors import ConfigError
from handwork.events import ApprovalRequested, ApprovalResolved, Event, Notice, RunFinished
from handwork.llm.scripted import ScriptedModel, call
from handwork.sandbox.open import open_sandbox
from handwork.schema import JSON, Approval, ApprovalRequest, Approve, Status
from handwork.session import Session
from handwork.tool.bash import Bash
from handwork.tool.python_execute import PythonExecute
from handwork.tool.terminate import Terminate


@pytest.fixture
async def port(home: Path) -> AsyncIterator[int]:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


def agent_of(workspace: Path, *commands: str, listed: tuple[str, ...], approve: Approve | None = None) -> ToolCallAgent:
    return ToolCallAgent(
        settings=Settings(sandbox=SandboxSettings(backend="bwrap", allow_net=listed)),
        workspace=workspace,
        llm=ScriptedModel([[call("bash", command=command)] for command in commands] + ["done"]),
        available_tools=[Bash, Terminate],
        approve=approve,
    )


def observations(agent: ToolCallAgent) -> list[str]:
    return [message.content or "" for message in agent.messages if message.role == "tool"]


CURL = "curl -sS --noproxy '' --max-time 20"


async def test_headless_the_model_reads_what_was_refused_and_people_are_told_once(tmp_path: Path, port: int) -> None:
    seen: list[Event] = []
    evil = f"{CURL} http://evil.test:1/ >/dev/null; {CURL} https://evil.test/; true"
    agent = agent_of(tmp_path, f"{CURL} http://localhost:{port}/", evil, evil, listed=(f"localhost:{port}",))
    result = await agent.run("go", listener=seen.append)
    assert result.status is Status.FINISHED
    first, second, third = observations(agent)
    assert "hello" in first
    assert "refused" not in first
    refused = "it is not in the allow-list (--allow-net), and nobody is there to ask"
    for text in (second, third):
        assert f"The sandbox's network refused evil.test:1: {refused}" in text
        assert f"The sandbox's network refused evil.test:443: {refused}" in text
    notices = [event.text for event in seen if isinstance(event, Notice) and "evil.test" in event.text]
    assert notices == [f"The sandbox may not reach evil.test:{number}: {refused}" for number in (1, 443)]


async def test_a_person_is_asked_within_the_run_and_the_connection_waits(tmp_path: Path, port: int) -> None:
    seen: list[Event] = []
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Approval:
        asked.append(request)
        await asyncio.sleep(0)
        return Approval(decision="allow_session")

    command = f"{CURL} http://localhost:{port}/ & {CURL} http://localhost:{port}/; wait"
    agent = agent_of(tmp_path, command, command, listed=("example.com",), approve=approve)
    await agent.run("go", listener=seen.append)
    assert [text.count("hello") for text in observations(agent)] == [2, 2]
    assert [request.rules for request in asked] == [(f"allow network localhost:{port}",)]
    pair = [event for event in seen if isinstance(event, ApprovalRequested | ApprovalResolved)]
    (end,) = [event for event in seen if isinstance(event, RunFinished)]
    assert [event.type for event in pair] == ["approval_requested", "approval_resolved"]
    assert {(event.run_id, event.agent) for event in pair} == {(end.run_id, end.agent)}


async def test_a_run_that_is_stopped_takes_its_question_along(tmp_path: Path, port: int) -> None:
    seen: list[Event] = []
    came, withdrawn = asyncio.Event(), asyncio.Event()

    async def approve(request: ApprovalRequest) -> Approval:
        came.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        raise AssertionError

    agent = agent_of(tmp_path, f"{CURL} http://localhost:{port}/", listed=("example.com",), approve=approve)
    running = asyncio.ensure_future(agent.run("go", listener=seen.append))
    await came.wait()
    agent.cancel()
    result = await running
    assert result.status is Status.CANCELLED
    assert withdrawn.is_set()
    types = [event.type for event in seen if isinstance(event, ApprovalRequested | ApprovalResolved | RunFinished)]
    assert types == ["approval_requested", "approval_resolved", "run_finished"]


@pytest.mark.parametrize("tool", ["bash", "python_execute"])
async def test_the_time_of_a_call_does_not_run_while_a_person_is_asked(tmp_path: Path, port: int, tool: str) -> None:
    left: list[float | None] = []

    async def approve(request: ApprovalRequest) -> Approval:
        left.extend(limit.when() for limit in session.clock._left)
        return Approval(decision="allow")

    command = f"{CURL} http://localhost:{port}/"
    code = f"import subprocess\nprint(subprocess.getoutput({command!r}))"
    words: dict[str, JSON] = {"command": command} if tool == "bash" else {"code": code}
    settings = Settings(sandbox=SandboxSettings(backend="bwrap", allow_net=("example.com",)))
    async with Session.open(settings, tmp_path, approve=approve) as session:
        agent = ToolCallAgent(
            llm=ScriptedModel([[call(tool, timeout=50, **words)], "done"]),
            available_tools=[Bash, PythonExecute, Terminate],
            session=session,
        )
        await agent.run("go")
    assert "hello" in observations(agent)[0]
    assert left == [None]


def _open(tmp_path: Path, settings: SandboxSettings, notices: list[str]) -> object:
    return open_sandbox(
        settings,
        workspace=tmp_path / "w",
        artifacts=tmp_path / "a",
        notify=lambda level, text: notices.append(text),
    )


def test_the_host_says_that_a_list_has_no_effect_there(tmp_path: Path) -> None:
    notices: list[str] = []
    _open(tmp_path, SandboxSettings(backend="host", allow_net=("a.test",)), notices)
    assert "The list of allowed hosts (allow_net) has no effect here: with host there is no sandbox." in notices


@pytest.mark.parametrize(("entry", "told"), [("localhost", 1), ("127.0.0.1", 1), ("localhost:8000", 0), ("a.test", 0)])
def test_a_server_of_this_machine_needs_its_port_in_the_list(tmp_path: Path, entry: str, told: int) -> None:
    notices: list[str] = []
    _open(tmp_path, SandboxSettings(backend="bwrap", allow_net=(entry,)), notices)
    assert [f"(--allow-net {entry}:8000)" in text for text in notices] == [True] * told


def test_a_backend_that_cannot_keep_to_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match="landlock cannot open the network for chosen hosts alone – use --sandbox bwrap"
    ):
        _open(tmp_path, SandboxSettings(backend="landlock", allow_net=("a.test",)), [])
