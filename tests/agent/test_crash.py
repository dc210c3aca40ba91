"""kill -9 at any moment: completed results are kept, nothing completed is repeated, the next request is valid."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from handwork.store.sqlite import Store
from tests.support.strict_server import StrictServer, tool

STEPS = 12


def next_step(request: dict[str, Any]) -> Any:
    """The scripted model: one numbered line a step, by bash and Python in turn."""
    done = sum(message["role"] == "tool" for message in request["messages"])
    if done >= STEPS:
        return "all lines are written"
    if done % 2:
        return tool("python_execute", code=f"print('line', {done}, file=open('log.txt', 'a'))")
    return tool("bash", command=f"echo line {done} >> log.txt")


async def start(url: str, workspace: Path, *options: str) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "handwork", "run", *options, "--json", "--model", "openai:any", "--base-url", url]
    return await asyncio.create_subprocess_exec(
        *command, cwd=workspace, env=dict(os.environ), stdout=asyncio.subprocess.PIPE, limit=2**24
    )


async def read_until_killed(process: asyncio.subprocess.Process, events: int) -> list[dict[str, Any]]:
    """Kill the process after so many of its events; returns what it told."""
    assert process.stdout is not None
    told = []
    while len(told) < events and (line := await process.stdout.readline()):
        told.append(json.loads(line))
    if len(told) == events and process.returncode is None:
        os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    return told


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
async def test_a_run_killed_again_and_again_comes_to_its_end_and_repeats_nothing(
    seed: int, tmp_path: Path, home: Path
) -> None:
    moments = random.Random(seed)
    told: list[dict[str, Any]] = []
    async with StrictServer(next_step) as server:
        for attempt in range(5):
            options = ["--session", told[0]["session_id"], "go on"] if told else ["write the lines"]
            process = await start(server.url, tmp_path, *options)
            told += await read_until_killed(process, moments.randrange(5, 30) if attempt < 4 else 10_000)
        assert process.returncode == 0
        assert server.refused == []
    assert told[-1]["type"] == "run_finished"
    assert told[-1]["output"] == "all lines are written"
    lines = Counter((tmp_path / "log.txt").read_text().splitlines())
    assert max(lines.values()) == 1
    history = server.requests[-1]["messages"]
    known = [m for m in history if m["role"] == "tool" and "Outcome unknown" not in m["content"]]
    assert len(lines) >= len(known) >= STEPS - 4  # at most one unknown a kill
    store = Store.open(home / "store.db")
    rows = list(store.events(told[0]["session_id"]))
    store.close()
    assert [seq for seq, _ in rows] == list(range(1, len(rows) + 1))


@pytest.mark.slow
async def test_the_shell_and_kernel_of_a_resumed_session_are_said_to_be_new(tmp_path: Path) -> None:
    def model(request: dict[str, Any]) -> Any:
        texts = [message["content"] for message in request["messages"] if message["role"] == "user"]
        done = sum(message["role"] == "tool" for message in request["messages"])
        if "again" in " ".join(texts):
            return tool("bash", command="echo $kept") if done == 1 else "end"
        return tool("bash", command="kept=yes") if done == 0 else "end"

    async with StrictServer(model) as server:
        first = await start(server.url, tmp_path, "first")
        told = await read_until_killed(first, 10_000)
        second = await start(server.url, tmp_path, "--session", told[0]["session_id"], "again")
        told = await read_until_killed(second, 10_000)
        [finished] = [event for event in told if event["type"] == "tool_call_finished"]
    assert "new" in finished["observation"]
    assert "yes" not in finished["observation"].split("(")[0]


@pytest.mark.slow
async def test_a_plan_survives_the_kill_of_its_process(tmp_path: Path) -> None:
    def model(request: dict[str, Any]) -> Any:
        match sum(message["role"] == "tool" for message in request["messages"]):
            case 0:
                return tool("planning", command="create", plan_id="p", title="Bake", steps=["mix", "bake"])
            case 1:
                return tool("planning", command="mark_step", step_index=0, step_status="completed")
            case 2:
                return tool("planning", command="mark_step", step_index=1, step_status="in_progress")
        return "end"

    async with StrictServer(model) as server:
        first = await start(server.url, tmp_path, "bake")
        assert first.stdout is not None
        told: list[dict[str, Any]] = []
        while sum(event["type"] == "plan_changed" for event in told) < 2:
            told.append(json.loads(await first.stdout.readline()))
        os.kill(first.pid, signal.SIGKILL)
        await first.wait()
        second = await start(server.url, tmp_path, "--session", told[0]["session_id"], "go on")
        after = await read_until_killed(second, 10_000)
        assert second.returncode == 0
        assert server.refused == []
    plan = [event["plan"] for event in told + after if event["type"] == "plan_changed"][-1]
    assert [step["status"] for step in plan["steps"]] == ["completed", "in_progress"]
