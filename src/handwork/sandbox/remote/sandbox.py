"""A sandbox whose supervisor runs elsewhere: reached over a stream, started with our own parts, freed when either side ends."""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from handwork.errors import SandboxError, SandboxUnavailable
from handwork.sandbox.client import SupervisedSandbox
from handwork.sandbox.connection import Connection
from handwork.sandbox.environment import base_environment
from handwork.sandbox.file_access import WHOLE, too_large
from handwork.sandbox.inside import wire
from handwork.sandbox.limits import Limits
from handwork.sandbox.remote.boot import Boot, Greeting, boot, check
from handwork.sandbox.remote.link import Link
from handwork.sandbox.remote.stream import Stream, greet
from handwork.schema import Notify

HOME = "/home/agent"
_PIECE = 4 << 20
"""A file is brought over in pieces of this size."""
_TRIES = 3


@dataclass(frozen=True)
class Place:
    """What was made for one start: the stream to it, and what frees it again (which may be called once, and never raises)."""

    stream: Stream
    free: Callable[[], Awaitable[None]]


class RelayedSandbox(SupervisedSandbox):
    """`inside` is the workspace's path over there, `base` a folder for our own parts and the session's artifacts."""

    contained = True
    greeting_limit = 60.0
    """Seconds that the place may take, once it runs, until its Python answers."""
    home = HOME
    """The home folder of programs; '' for the one that the machine has."""
    text = False
    """Whether the stream takes only lines of text."""
    silence = 0.0
    """After so many seconds without a word from us, all ends over there; 0 where the stream's end is certain to arrive."""

    def __init__(
        self, workspace: Path, artifacts: Path, notify: Notify, *, inside: str, base: str, where: str,
        limits: Limits | None = None,
    ) -> None:  # fmt: skip
        super().__init__(workspace, artifacts, notify, limits)
        self._inside, self._base, self._where = inside, base, where
        self._opening: asyncio.Task[None] | None = None
        self._met: tuple[Place, Greeting, bytes] | None = None
        self._search_path, self._home = "", HOME

    @property
    def workspace(self) -> str:
        return self._inside

    @property
    def artifacts(self) -> str:
        return f"{self._base}/artifacts"

    @property
    def python(self) -> str:
        return "python3"

    @property
    def package(self) -> str:
        return f"{self._base}/handwork"

    # ---- what a backend adds

    @abstractmethod
    async def _open(self, boot: Boot) -> Place:
        """Make the place and run boot.command there. Raises SandboxUnavailable, and then nothing is left of it."""

    # ---- start

    async def _prepare(self) -> None:
        self._opening = asyncio.create_task(self._establish(), name="sandbox place")
        try:
            await self._opening
        except asyncio.CancelledError:
            if not self._closed:
                raise
        if self._closed:
            await self._abandon()
            self._let_be()
            raise SandboxError("The sandbox was closed while it started")

    def _give_up(self) -> None:
        if self._opening is not None:
            self._opening.cancel()

    def _let_be(self) -> None:
        """A start has failed: what was looked at for it is not needed."""

    async def _establish(self) -> None:
        try:
            await self._meet()
        except BaseException:
            self._let_be()
            raise

    async def _meet(self) -> None:
        settings = {
            "workspace": self._inside,
            "limits": self._limits.words(),
            "allowed": {"readable": ["/"], "writable": ["/"], "hidden": []},
            "contained": True,
        }
        start = boot(self._base, settings, text=self.text, silence=self.silence)
        place = await self._open(start)
        try:
            async with asyncio.timeout(self.greeting_limit):
                greeting, after = await greet(place.stream, start)
            check(greeting, self._where)
        except BaseException as error:
            place.stream.close()
            await asyncio.shield(place.free())
            if isinstance(error, (EOFError, TimeoutError)):
                raise self._explain(place.stream.said.decode(errors="replace").strip()) from None
            raise
        self._met, self._search_path = (place, greeting, after), greeting.path
        self._home = self.home or greeting.home

    async def _abandon(self) -> None:
        if self._met is not None:
            place, self._met = self._met[0], None
            place.stream.close()
            await place.free()

    def _launch(self) -> Connection:
        if self._met is None:
            raise SandboxError(f"{self._where} is gone")
        (place, _greeting, after), self._met = self._met, None
        return Link(place.stream, text=self.text, finish=place.free).connect(after, self._notify)

    def _explain(self, errors: str) -> SandboxError:
        why = errors.splitlines()[-1] if errors else "it said nothing"
        needs = "the image needs python3; name another one, such as python:3.12-slim"
        hint = "name a folder that can be made there with [sandbox] work_dir" if self._inside in why else needs
        return SandboxUnavailable(f"The supervisor does not start in {self._where}: {why}", hint=hint)

    # ---- use

    def _environment(self) -> Mapping[str, str]:
        own = base_environment(self._home, "/tmp")
        return {**own, "PATH": self._search_path or own["PATH"].partition(":")[2]}

    def _path(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._inside}/{path}".rstrip("/")

    async def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """In pieces, so that nobody's file is too large for the stream; anew if somebody else replaces it meanwhile."""
        for _ in range(_TRIES):
            parts, seen, left, got = list[bytes](), list[object](), limit, 0
            while left is None or left > 0:
                size = _PIECE if left is None else min(_PIECE, left)
                which, part = await self._piece(path, offset + got, size)
                got += len(part)
                if limit is None and max(got, _size(which) - offset) > WHOLE:
                    raise OSError(*too_large(f"over {WHOLE >> 20} MB").args, path)
                seen.append(which)
                parts.append(part)
                left = None if left is None else left - len(part)
                if len(part) < size:
                    break
            if all(which == seen[0] for which in seen):
                break
        return b"".join(parts)

    async def _piece(self, path: str, offset: int, size: int) -> tuple[object, bytes]:
        which, fds = await self._ask("piece", path, offset=offset, size=size)
        try:
            return which, os.pread(fds[0], size, 0) if fds else b""
        finally:
            wire.close_all(fds)


def _size(which: object) -> int:
    """What the other side says that the file holds."""
    said = which[-1] if isinstance(which, list) and which else 0
    return said if isinstance(said, int) else 0
