"""Runs the real command in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "handwork")


@dataclass(frozen=True)
class Ended:
    """What a finished command left behind."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


async def start(
    *arguments: str,
    cwd: Path,
    stdin: int = asyncio.subprocess.DEVNULL,
    stdout: int = asyncio.subprocess.PIPE,
    program: Sequence[str] = COMMAND,
    **environ: str,
) -> asyncio.subprocess.Process:
    """Begin running the command; `program` is what stands before its arguments."""
    return await asyncio.create_subprocess_exec(
        *program,
        *arguments,
        cwd=cwd,
        env={**os.environ, **environ},
        stdin=stdin,
        stdout=stdout,
        stderr=asyncio.subprocess.PIPE,
    )


async def reached(process: asyncio.subprocess.Process, kind: str) -> dict[str, Any]:
    """Wait until a command with --json has told an event of this kind."""
    assert process.stdout is not None
    async with asyncio.timeout(30):
        async for line in process.stdout:
            event: dict[str, Any] = json.loads(line)
            if event["type"] == kind:
                return event
    raise AssertionError(f"the command ended without {kind}")


async def handwork(
    *arguments: str,
    cwd: Path,
    stdin: str | None = None,
    patience: float = 60,
    program: Sequence[str] = COMMAND,
    **environ: str,
) -> Ended:
    """Run the command to its end."""
    process = await start(
        *arguments,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
        program=program,
        **environ,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(None if stdin is None else stdin.encode()), patience)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
            await process.wait()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())
