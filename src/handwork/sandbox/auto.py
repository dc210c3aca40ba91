"""The backend auto: bubblewrap, and where that does not run the weaker landlock, which is announced and promises less."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from handwork.errors import SandboxError, SandboxUnavailable
from handwork.sandbox import unavailable
from handwork.sandbox.base import Entry, ExecResult, Process, Sandbox
from handwork.sandbox.bwrap import BwrapSandbox, find_bwrap
from handwork.sandbox.inside import landlock
from handwork.schema import Notify

ENOUGH = 3
"""The version of Landlock from which on it is a choice: before, programs can empty the user's files."""


class AutoSandbox:
    """Takes the one that runs, for good, when it is first used: that start is the probe. Never the host.

    instead: opens the weaker one; None where it would not do what the settings ask for.
    """

    def __init__(self, first: BwrapSandbox, instead: Callable[[], Sandbox] | None, notify: Notify) -> None:
        self._taken: Sandbox = first
        self._first, self._instead, self._notify = first, instead, notify
        self._settled = self._promised = False
        self._choosing = asyncio.Lock()

    # ---- the choice

    @property
    def name(self) -> str:
        self._look()
        return self._taken.name

    @property
    def contained(self) -> bool:
        self._look()
        self._promised = self._promised or self._taken.contained
        return self._taken.contained

    def _look(self) -> None:
        """What can be known without a start."""
        if not self._settled and find_bwrap() is None and self._may_fall_back():
            self._fall_back(unavailable.missing())

    def _may_fall_back(self) -> bool:
        return self._instead is not None and landlock.version() >= ENOUGH

    def _fall_back(self, error: SandboxUnavailable) -> None:
        assert self._instead is not None
        self._notify(
            "warning",
            f"{error.what}. Tools run in a weaker sandbox therefore. For the full one: {error.hint}",
        )
        self._taken, self._settled = self._instead(), True

    async def _started(self, *, effect: bool = False) -> Sandbox:
        async with self._choosing:
            if not self._settled:
                self._look()
            if not self._settled:
                try:
                    await self._first.resolve(".")
                except SandboxUnavailable as error:
                    if not self._may_fall_back():
                        raise
                    self._fall_back(error)
                    if effect and self._promised:
                        # It was approved, if at all, for being contained.
                        raise SandboxError(
                            "Nothing was run: the sandbox does not start here, and a weaker one took its place",
                            hint="make the call again: it is decided anew, for the weaker one",
                        ) from None
                self._settled = True
            return self._taken

    # ---- the sandbox

    @property
    def workspace(self) -> str:
        return self._taken.workspace

    @property
    def artifacts(self) -> str:
        return self._taken.artifacts

    @property
    def python(self) -> str:
        return self._taken.python

    @property
    def package(self) -> str:
        return self._taken.package

    @property
    def generation(self) -> int:
        return self._taken.generation

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
        sandbox = await self._started(effect=True)
        return await sandbox.exec(argv, cwd=cwd, env=env, stdin=stdin, timeout=timeout, max_output=max_output)

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
        sandbox = await self._started(effect=True)
        return await sandbox.spawn(argv, cwd=cwd, env=env, stdin=stdin, pty=pty, apart=apart)

    async def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        return await (await self._started()).read(path, offset=offset, limit=limit)

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        mode: int | None = None,
        exclusive: bool = False,
        expected: str | None = None,
    ) -> None:
        sandbox = await self._started(effect=True)
        await sandbox.write(path, data, mode=mode, exclusive=exclusive, expected=expected)

    async def remove(self, path: str, *, expected: str | None = None) -> None:
        await (await self._started(effect=True)).remove(path, expected=expected)

    async def list(self, path: str, *, depth: int = 1, hidden: bool = True, limit: int = 10_000) -> list[Entry]:
        return await (await self._started()).list(path, depth=depth, hidden=hidden, limit=limit)

    async def stat(self, path: str) -> Entry | None:
        return await (await self._started()).stat(path)

    async def resolve(self, path: str) -> str:
        return await (await self._started()).resolve(path)

    async def after_call(self) -> Sequence[str]:
        return await self._taken.after_call()

    async def close(self) -> None:
        await self._first.close()
        if self._taken is not self._first:
            await self._taken.close()
