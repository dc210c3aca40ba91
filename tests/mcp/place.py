"""A session as a connection to an MCP server sees it: a sandbox, a person at the door, and what was told."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from handwork.config import MCPServerSettings, SandboxSettings
from handwork.mcp.connection import Connection
from handwork.mcp.surroundings import AskHuman, Surroundings
from handwork.sandbox.base import Process
from handwork.sandbox.open import open_sandbox
from handwork.tool.call_clock import CallClock

STUB = Path(__file__).with_name("stub.py")


class Clock(CallClock):
    """One whose time passes when a test says so, also on a machine that has a lot to do."""

    def __init__(self) -> None:
        super().__init__()
        self._begun = asyncio.Event()

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        async with super().limit(seconds) as limit:
            self._begun.set()
            yield limit

    def pass_(self, seconds: float) -> None:
        """So many seconds are over, for all limits that run."""
        now = asyncio.get_running_loop().time()
        for limit in self._left:
            if (until := limit.when()) is not None and not limit.expired():
                limit.reschedule(max(until - seconds, now))

    async def run_out(self, seconds: float) -> None:
        """Wait until there is a limit of at most so many seconds, then let these pass; until then none passes."""
        with self.stopped():
            async with asyncio.timeout(60):  # it never comes: the test fails
                while not any(left <= seconds for left in self._left.values()):
                    self._begun.clear()
                    await self._begun.wait()
        self.pass_(seconds)


class Place:
    """`notices` is what a person was told, `started` the programs of servers, `connections` what `connect` made."""

    def __init__(self, base: Path, backend: str = "bwrap") -> None:
        self.workspace = base / "workspace"
        self.workspace.mkdir()
        self.notices: list[str] = []
        self.started: list[Process] = []
        self.connections: list[Connection] = []
        self.slept: list[float] = []
        self.clock = Clock()
        self.home = base / "home"
        self.sandbox = open_sandbox(
            SandboxSettings(backend=backend),
            workspace=self.workspace,
            artifacts=base / "artifacts",
            notify=self._notify,
        )

    def _notify(self, level: str, text: str) -> None:
        self.notices.append(text)

    async def _spawn(self, argv: Sequence[str], *, cwd: str | None, env: Mapping[str, str], contained: bool) -> Process:
        process = await self.sandbox.spawn(argv, cwd=cwd, env=env, stdin=True, apart=True)
        self.started.append(process)
        return process

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def surroundings(self, ask: AskHuman | None = None) -> Surroundings:
        return Surroundings(
            spawn=self._spawn,
            workspace=str(self.workspace),
            home=self.home,
            notify=self._notify,
            ask=ask,
            clock=self.clock,
        )

    def stub(self, *options: str, **settings: Any) -> MCPServerSettings:
        """The settings of a stub server (see stub.py), which is put into the workspace."""
        shutil.copy(STUB, self.workspace / "stub.py")
        return MCPServerSettings(command=sys.executable, args=("stub.py", *options), **{"timeout": 30, **settings})

    def connect(self, *options: str, ask: AskHuman | None = None, name: str = "stub", **settings: Any) -> Connection:
        """A connection to a stub server."""
        return self.connect_to(self.stub(*options, **settings), ask=ask, name=name)

    def connect_to(self, settings: MCPServerSettings, ask: AskHuman | None = None, name: str = "stub") -> Connection:
        made = Connection(name, settings, self.surroundings(ask), sleep=self.sleep)
        self.connections.append(made)
        return made

    async def close(self) -> None:
        for connection in self.connections:
            await connection.close()
        await self.sandbox.close()


@asynccontextmanager
async def opened(base: Path, backend: str = "bwrap") -> AsyncIterator[Place]:
    """A place, closed at the end."""
    place = Place(base, backend)
    try:
        yield place
    finally:
        await place.close()
