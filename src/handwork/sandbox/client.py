"""A sandbox served by our supervisor: what bwrap and host share."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from handwork.config import SandboxSettings
from handwork.errors import SandboxError
from handwork.sandbox.base import ExecResult, Process
from handwork.sandbox.capture import Drain
from handwork.sandbox.connection import Connection
from handwork.sandbox.file_access import FileAccess
from handwork.sandbox.inside import wire
from handwork.sandbox.limits import Limits, limits_of
from handwork.sandbox.network.listener import open_network
from handwork.sandbox.network.proxy import Proxy, environment
from handwork.sandbox.process import Program
from handwork.sandbox.sentences import MOST, few
from handwork.sandbox.starting import start
from handwork.schema import Notify

_ERRORS_KEPT = 65536
"""Bytes that are kept of a standard error that stands apart."""


class SupervisedSandbox(FileAccess):
    """Starts its supervisor at the first use, and anew after it died. Used from one event loop."""

    name: str
    contained: bool
    start_limit = 30.0
    """Seconds that a supervisor may take until it is ready."""

    def __init__(self, workspace: Path, artifacts: Path, notify: Notify, limits: Limits | None = None) -> None:
        self._workspace, self._artifacts, self._notify = workspace, artifacts, notify
        self._limits = limits or limits_of(SandboxSettings())
        self._connection: Connection | None = None
        self._starting: asyncio.Task[Connection] | None = None
        self._starts = 0
        self._told: list[str] = []
        """What happened inside since the last call ended, in sentences for the model."""
        self._closed = False
        self.proxy: Proxy | None = None
        """The network on request, where the settings ask for one."""

    @property
    def workspace(self) -> str:
        return str(self._workspace)

    @property
    def artifacts(self) -> str:
        return str(self._artifacts)

    @property
    def python(self) -> str:
        return sys.executable

    @property
    def package(self) -> str:
        return str(Path(__file__).parents[1])

    @property
    def generation(self) -> int:
        return max(0, self._starts - 1)

    async def after_call(self) -> Sequence[str]:
        if self._connection is not None:
            self._connection.look()
        refused = self.proxy.take_refused() if self.proxy is not None else []
        told, self._told = [*self._told, *refused], []
        return few([*told, *self._tidy()] if self._starts else told)

    def _tell(self, sentence: str) -> None:
        # A hundred bombs in one call are one sentence; who speaks in the supervisor's place could say any number of them.
        if sentence not in self._told and len(self._told) <= 2 * MOST:
            self._told.append(sentence)

    # ---- what a backend adds

    @abstractmethod
    def _launch(self) -> Connection:
        """Start a supervisor; called with a running loop. Raises SandboxUnavailable."""

    async def _prepare(self) -> None:
        """What has to be there before `_launch`, and takes its time (a container, a remote machine)."""

    def _give_up(self) -> None:
        """The sandbox closes: what `_prepare` waits for is not needed any more."""

    @abstractmethod
    def _explain(self, errors: str) -> SandboxError:
        """Why the supervisor did not start, given what it wrote on its standard error."""

    def _another_way(self, errors: str) -> bool:
        """Whether to try once more, differently, after the start failed with these errors."""
        return False

    @abstractmethod
    def _environment(self) -> Mapping[str, str]:
        """The clean environment of programs inside."""

    async def _connected(self, connection: Connection) -> None:
        """What belongs to a start once the supervisor is ready."""
        if self.proxy is not None:
            await open_network(self.proxy, connection, self._notify)

    def _tidy(self) -> list[str]:
        """Put away what a call left and may not lie where it is; sentences for the model. Also called when the sandbox closes."""
        return []

    def _clean(self) -> None:
        """The supervisor is gone: remove what was made for it outside and it could not remove itself."""

    # ---- start and end

    async def _running(self) -> Connection:
        connection, starting = self._connection, self._starting
        if connection is not None and asyncio.current_task() is starting:
            return connection  # what belongs to the start itself; all others wait until it is over
        if starting is None or starting.done():
            if connection is not None and connection.alive:
                return connection
            if self._closed:
                raise SandboxError("The sandbox is closed")
            starting = self._starting = asyncio.create_task(self._start(), name="sandbox start")
        return await asyncio.shield(starting)

    async def _start(self) -> Connection:
        if self._connection is not None:
            await self._connection.end()
            self._clean()
        self._workspace.mkdir(parents=True, exist_ok=True)
        self._artifacts.mkdir(parents=True, exist_ok=True)
        await self._prepare()
        while True:
            if self._closed:
                raise SandboxError("The sandbox was closed while it started")
            connection = self._connection = self._launch()
            connection.tell = self._tell
            try:
                async with asyncio.timeout(self.start_limit):
                    await connection.ready
                    await self._connected(connection)
            except (SandboxError, TimeoutError):
                await connection.end()
                if self._closed:
                    continue
                if not self._another_way(connection.errors):
                    raise self._explain(connection.errors) from None
            except BaseException:
                await connection.end()  # half a start is none: nobody may use it as if it were whole
                raise
            else:
                self._starts += 1
                return connection

    async def close(self) -> None:
        """Kill everything inside and wait until it is gone; never raises for a dead supervisor."""
        self._closed = True
        closing = asyncio.ensure_future(self._close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            # Whoever cancels us must not leave processes behind: ending them takes milliseconds.
            await closing
            raise

    async def _close(self) -> None:
        if self._starting is not None:
            self._give_up()
            if self._connection is not None:
                await self._connection.end()  # a start that goes on ends with it, instead of at its time limit
            await asyncio.wait([self._starting])
            if not self._starting.cancelled():
                self._starting.exception()  # whoever wanted the start was told
        if self._connection is not None:
            await self._connection.end()
            self._clean()
        if self.proxy is not None:
            await self.proxy.close()

    # ---- programs

    async def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float | None = None,
        max_output: int = 1_000_000,
    ) -> ExecResult:
        """Run a command to its end; what it left running in the background is killed then, too."""
        connection = await self._running()
        output, errors = Drain(max_output), Drain(max_output)
        program: Program | None = None
        timed_out = False
        try:
            fds = [wire.memory_file(stdin)] if stdin else []
            fds += [output.open(), errors.open()]
            place = self._path(cwd or "")
            try:
                async with asyncio.timeout(timeout):
                    program = await start(
                        connection, argv, fds=fds, stdin=bool(stdin), stderr=True, cwd=place, env=self._with(env)
                    )
                    await program.ended.wait()
            except TimeoutError:
                timed_out = True
            except asyncio.CancelledError:
                if program is not None:
                    await program.put_down()
                raise
            if program is None:
                return ExecResult(-signal.SIGKILL, b"", timed_out=True)
            await program.kill()
            (text, lost), (problems, also) = output.finish(), errors.finish()
        finally:
            output.close()
            errors.close()
        if program.over:
            problems += f"\n[{program.over}]\n".encode()
        return ExecResult(await program.wait(), text, problems, timed_out, lost + also, await program.spent())

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bool = False,
        pty: bool = False,
        apart: bool = False,
    ) -> Process:
        connection = await self._running()
        ours: list[int] = []
        fds: list[int] = []
        errors = Drain(_ERRORS_KEPT, tail_only=True) if apart and not pty else None
        try:
            if stdin and not pty:
                theirs, mine = os.pipe()
                fds.append(theirs)
                ours.append(mine)
            if not pty:
                mine, theirs = os.pipe()
                fds.append(theirs)
                ours.append(mine)
            if errors is not None:
                fds.append(errors.open())
            for fd in ours:
                os.set_blocking(fd, False)
            program = await start(
                connection,
                argv,
                fds=fds,
                stdin=stdin and not pty,
                stderr=errors is not None,
                pty=pty,
                cwd=self._path(cwd or ""),
                env=self._with(env),
            )
        except BaseException:
            wire.close_all(fds)
            wire.close_all(ours)
            if errors is not None:
                errors.close()
            raise
        program.drain = errors
        if ours:
            program.output = ours[-1]
            program.input = ours[0] if stdin else None
        return program

    def _with(self, env: Mapping[str, str] | None) -> dict[str, str]:
        through = environment() if self.proxy is not None else {}
        return {**self._environment(), **through, **(env or {})}

    def _path(self, path: str) -> str:
        return str(self._workspace / path)
