"""A program in a terminal of its own, which the model reads and types into over several calls."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from handwork.errors import SandboxError, ToolError
from handwork.sandbox.base import Process, Sandbox
from handwork.tool.jobs import short_label
from handwork.tool.process_end import how_it_ended
from handwork.tool.process_tree import end_tree
from handwork.tool.terminal_screen import COLUMNS, ROWS, Screen
from handwork.tool.terminal_text import Fresh
from handwork.tool.terminal_wait import waits_for_input

Rest = Literal["ended", "waits", "quiet", "busy"]
"""How a program came to rest: it ended; waits for input; has been silent; or did none of it in the time that was given."""
_CHUNK = 16_384
_FLOOD, _SLOWER = 1000, 4
"""A program that fills its terminal faster than it is read (by so many bytes at once) is slowed down: we rest so many times as
long as drawing took."""
_FIRST_LOOK, _LATEST_LOOK = 0.1, 1.0
"""Seconds of silence before the first look at whether it waits, and between two later ones at most."""
_QUIET = 3.0
_TYPE_SECONDS = 5.0
_ENVIRONMENT = {"TERM": "xterm", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
_OPENING = f'stty rows {ROWS} cols {COLUMNS} 2>/dev/null; eval "$1"'


class TerminalJob:
    """See the module. Its output is read all the time, onto a screen in memory."""

    def __init__(self, name: str, command: str, sandbox: Sandbox, process: Process) -> None:
        self.name, self.label = name, short_label(command)
        self.told = False
        self.screen = Screen()
        self._fresh = Fresh()
        self._sandbox, self.process = sandbox, process
        self._over = False
        self._heard = time.monotonic()
        self._woken = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, name: str, command: str, sandbox: Sandbox, folder: str | None, environment: Mapping[str, str]
    ) -> TerminalJob:
        """Start it. Errors: ToolError if the system refuses, SandboxError."""
        argv = ["bash", "-c", _OPENING, "bash", command]
        try:
            process = await sandbox.spawn(argv, cwd=folder, env={**environment, **_ENVIRONMENT}, pty=True)
        except OSError as error:
            raise ToolError(f"The command cannot be started in a terminal: {error.strerror or error}.") from error
        return cls(name, command, sandbox, process)

    # ---- as a job

    @property
    def ended(self) -> bool:
        return self._over

    @property
    def exit_code(self) -> int | None:
        return self.process.returncode

    @property
    def unread(self) -> bool:
        return self.screen.grid.changed

    def state(self) -> str:
        return how_it_ended(self.process.returncode) if self._over else "running"

    def fresh(self) -> str:
        text, lost = self.screen.grid.fresh()
        return f"[... {lost} lines omitted ...]\n{text}" if lost else text

    async def stop(self) -> None:
        """Hang up, as closing a terminal's window does, then kill."""
        if not self._over:
            await end_tree(self._sandbox, [self.process.pid], "HUP")
        await self.close()

    async def close(self) -> None:
        """Kill it with all that it started."""
        with contextlib.suppress(OSError, SandboxError):
            await self.process.kill()
        await asyncio.wait({self._reader}, timeout=1)
        self._reader.cancel()
        await asyncio.wait({self._reader})

    # ---- typing and waiting

    async def type(self, keys: bytes) -> None:
        """Send keys. Errors: ToolError when it has ended or does not take them."""
        if self._over:
            raise ToolError(f"Job {self.name} has ended ({self.state()}): nothing can be typed.")
        try:
            async with asyncio.timeout(_TYPE_SECONDS):
                await self.process.write(keys)
        except (TimeoutError, BlockingIOError):
            raise ToolError(f"Job {self.name} does not read what is typed: its terminal is full.") from None
        except (OSError, SandboxError):
            self._woken.set()
        self._heard = time.monotonic()

    async def rest(self, limit: float, progress: Callable[[str], Awaitable[None]], *, patient: bool = False) -> Rest:
        """Wait until it ends, waits for input or (unless `patient`) is silent for a while, `limit` seconds at most."""
        until = time.monotonic() + limit
        look = _FIRST_LOOK
        while not self._over:
            now = time.monotonic()
            if now >= until:
                return "busy"
            silent = now - self._heard
            if silent >= look:
                if await waits_for_input(self._sandbox, self.process.pid) and self._silent_since(now):
                    return "waits"
                if silent >= _QUIET and not patient:
                    return "quiet"
                look = min(silent * 2, silent + _LATEST_LOOK)
            await self._news(min(look - silent if silent < look else _FIRST_LOOK, until - now))
            if text := self._fresh.take():
                look = _FIRST_LOOK
                await progress(text)
        return "ended"

    def _silent_since(self, moment: float) -> bool:
        return self._heard <= moment and not self._over

    async def _news(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.01)):
                await self._woken.wait()
        self._woken.clear()

    async def _read(self) -> None:
        try:
            with contextlib.suppress(OSError, SandboxError):
                while chunk := await self.process.read(_CHUNK):
                    began = time.monotonic()
                    self._fresh.add(chunk)
                    self.screen.feed(chunk)
                    self._heard = time.monotonic()
                    self._woken.set()
                    await self._answer()
                    await asyncio.sleep(_SLOWER * (self._heard - began) if len(chunk) > _FLOOD else 0)
                await self.process.wait()
        finally:
            self._over = True
            self._woken.set()

    async def _answer(self) -> None:
        replies, self.screen.replies = self.screen.replies, b""
        if replies:
            with contextlib.suppress(TimeoutError, OSError, SandboxError):
                async with asyncio.timeout(0.2):
                    await self.process.write(replies)
