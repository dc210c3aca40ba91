"""Ctrl-C: the first ends the run in good order, the second at once; nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.cli.command import reached, start
from tests.support.fault_server import Answer, Fault
from tests.support.strict_server import StrictServer, tool


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_first_signal_ends_the_run_as_cancelled_within_seconds_and_leaves_no_process(
    workspace: Path, number: signal.Signals
) -> None:
    mark = f"3{secrets.randbelow(10**9):09}"  # ours, whatever else sleeps on this machine
    script = [tool("bash", command=f"setsid sleep {mark} & echo begun; sleep {mark}")]
    async with StrictServer(script) as server:
        model = ("--base-url", server.url, "--model", "openai:any")
        process = await start("run", "Wait.", "--json", "--session", "mine", *model, cwd=workspace)
        await reached(process, "tool_output_delta")
        began = time.monotonic()
        process.send_signal(number)
        out, err = await asyncio.wait_for(process.communicate(), 20)
    assert time.monotonic() - began < 5
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["status"] == "cancelled"
    assert b"Traceback" not in err
    assert not _sleepers(mark)


async def test_a_signal_while_the_model_is_silent_ends_the_run_too(workspace: Path) -> None:
    asked = asyncio.Event()

    def silence(request: object) -> Answer:
        asked.set()
        return Answer(before=Fault.SILENCE)

    async with StrictServer(silence) as server:
        process = await start("run", "Wait.", "--base-url", server.url, "--model", "openai:any", cwd=workspace)
        await asyncio.wait_for(asked.wait(), 20)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out) == (130, b"")
    assert b"cancelled" in err
    assert b"To go on: " in err
    assert b"handwork run --session" in err


def _sleepers(mark: str) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            command = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if command == f"sleep {mark}":
            found.append(command)
    return found


STUBBORN = """
import asyncio
from handwork.cli.interrupt import Interrupts

async def main():
    async def kill():
        print("killed", flush=True)
    interrupts = Interrupts(lambda text: print(text, flush=True))
    interrupts.run, interrupts.kill = (lambda: None), kill
    with interrupts.watching():
        print("ready", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_the_second_signal_kills_what_runs_and_ends_at_once() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", STUBBORN, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert b"Ctrl-C again" in await process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out, err) == (130, b"killed\n", b"")
