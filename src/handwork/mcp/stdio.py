"""An MCP server as a program: one message a line on its standard input and output, and its end in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from handwork.config import MCPServerSettings
from handwork.errors import HandworkError, MCPUnavailable, SandboxError, SandboxUnavailable
from handwork.mcp.failing import ended, said_last, shown
from handwork.mcp.lines import LONGEST, Lines, TooLong, messages, written
from handwork.mcp.surroundings import Surroundings
from handwork.sandbox.base import Process
from handwork.tool.uncancelled import uncancelled

_CHUNK = 1 << 16
_MOST_WAITING = LONGEST
"""Bytes that may wait for a server that does not read."""
_FLUSH, _GRACE, _REPORT = 0.5, 2.0, 2.0
"""Seconds: for what waits to be written, for a program to end by itself, and for the report of how it ended."""
_ENOUGH = 5
"""From so many lines on that are no messages, a person is told."""

_SANDBOX_HINT = (
    'install it; if it is, the sandbox does not see it: name its folder in "paths" and its program by its whole path, '
    'or start it beside the sandbox ("sandbox": false)'
)


class Stdio:
    """A Way (see transport.py): started in the sandbox or beside it when it is entered, gone with all its children when it is left."""

    kind = "stdio"

    def __init__(self, name: str, settings: MCPServerSettings, surroundings: Surroundings) -> None:
        self._name, self._settings, self._surroundings = name, settings, surroundings
        self._process: Process | None = None
        self._writer: asyncio.Task[None] | None = None
        self._outbox: Outbox | None = None
        self._why = ""
        self.noise = 0
        self._noise = ""

    async def __aenter__(self) -> tuple[Any, Any]:
        process = self._process = await self._start()
        self._outbox = Outbox(self._broke)
        self._writer = asyncio.create_task(self._outbox.empty_into(process), name=f"mcp {self._name} input")
        return Inbox(self), self._outbox

    async def _start(self) -> Process:
        settings = self._settings
        argv = [_direct(settings.command), *settings.args]
        try:
            return await self._surroundings.spawn(
                argv, cwd=settings.cwd or None, env=settings.env, contained=settings.sandbox
            )
        except (SandboxUnavailable, OSError, ValueError) as error:
            raise _not_started(self._name, settings, error) from error
        except SandboxError as error:
            raise MCPUnavailable(
                f"The MCP server {self._name} cannot be started: {error.what}", hint=error.hint
            ) from error

    def failure(self, how: str = "") -> MCPUnavailable | None:
        if self._process is None:
            return None
        how = how or self._why or ended(self._process.returncode)
        words = f"The MCP server {self._name} {how}{said_last(self._process.errors)}"
        if self.noise:
            words += f". On its standard output it wrote what is no message: {self._noise}"
        return MCPUnavailable(words)

    # ---- reading

    async def chunk(self) -> bytes:
        """What came next; b'' when nothing comes any more, and then `failure` knows why."""
        process = self._process
        assert process is not None
        try:
            if data := await process.read(_CHUNK):
                return data
            await self._has_ended()
        except SandboxError as error:
            self._why = self._why or f"is gone: {error.what}"
        return b""

    async def _has_ended(self) -> bool:
        """Whether the program has ended: that is reported a moment after its last word."""
        assert self._process is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REPORT):
                await self._process.wait()
        return self._process.returncode is not None

    async def overrun(self) -> None:
        """It sent more than a message may have: that is its end."""
        await self._end_because(f"sent a message of more than {LONGEST >> 20} MB and was ended")

    def skip(self, line: bytes | bytearray) -> None:
        """A line was no message."""
        self.noise += 1
        self._noise = self._noise or shown(bytes(line[:400]).decode(errors="replace"))
        if self.noise == _ENOUGH:
            self._surroundings.notify(
                "info",
                f"The MCP server {self._name} writes what is no message on its standard output, which is skipped: {self._noise}",
            )

    async def _broke(self, why: str) -> None:
        """It takes nothing more: mostly because it has ended, which then is what to say."""
        process = self._process
        assert process is not None
        with contextlib.suppress(SandboxError):
            if not await self._has_ended():
                await self._end_because(why)
            if self._why == why and process.returncode is not None and process.returncode >= 0:
                self._why = ""  # it had ended by itself, and the report was late

    async def _end_because(self, why: str) -> None:
        self._why = self._why or why
        if self._process is not None:
            with contextlib.suppress(SandboxError):
                await self._process.kill()

    # ---- the end

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _, cancelled = await uncancelled(self._end())  # a bounded time: nobody may leave the program behind
        if cancelled:
            raise asyncio.CancelledError

    async def _end(self) -> None:
        """In order: what waits is written, its input is closed, it has a moment to end; then all that it started is killed."""
        process, writer, outbox = self._process, self._writer, self._outbox
        if process is None or writer is None or outbox is None:
            return
        drain = asyncio.create_task(_drain(process), name=f"mcp {self._name} output")  # else it may wait for a reader
        try:
            outbox.close()
            await asyncio.wait([writer], timeout=_FLUSH)
            writer.cancel()
            await asyncio.wait([writer])
            await process.close_stdin()
            if process.returncode is None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GRACE):
                        await process.wait()
        except SandboxError:
            pass  # it is gone already
        finally:
            writer.cancel()
            drain.cancel()
            with contextlib.suppress(HandworkError):
                await process.kill()
            await asyncio.wait([writer, drain])


class Inbox:
    """The SDK's stream of what the server says."""

    def __init__(self, stdio: Stdio) -> None:
        self._stdio, self._lines = stdio, Lines()
        self._ready: deque[Any] = deque()
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        from mcp.shared.message import SessionMessage

        while not self._ready:
            if self._over:
                raise StopAsyncIteration
            await self._fill()
        return SessionMessage(self._ready.popleft())

    async def receive(self) -> Any:
        from anyio import EndOfStream

        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise EndOfStream from None

    async def _fill(self) -> None:
        await asyncio.sleep(0)  # a server that never stops to talk must not stop everybody else
        data = await self._stdio.chunk()
        self._over = not data
        try:
            for line in self._lines.feed(data) if data else self._lines.end():
                found = messages(line, whole=bool(data))
                self._ready.extend(found)
                if not found:
                    self._stdio.skip(line)
        except TooLong:
            self._over = True
            await self._stdio.overrun()

    async def aclose(self) -> None:
        self._over = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class Outbox:
    """The SDK's stream to the server. To send never waits: one task writes, so that neither a server that does not read nor a
    cancelled call leaves half a line."""

    def __init__(self, broke: Callable[[str], Awaitable[None]]) -> None:
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._closed = self._broken = False
        self._broke = broke

    async def send(self, item: Any, /) -> None:
        from anyio import BrokenResourceError, ClosedResourceError

        if self._closed:
            raise ClosedResourceError
        if self._broken:
            raise BrokenResourceError
        line = written(item.message)
        if self._size > _MOST_WAITING:
            await self._broke("does not read its standard input, and was ended")
            raise BrokenResourceError
        self._waiting.append(line)
        self._size += len(line)
        self._news.set()

    async def empty_into(self, process: Process) -> None:
        """Write what was sent, until it is closed or nobody reads any more."""
        while True:
            while self._waiting:
                line = self._waiting.popleft()
                try:
                    await process.write(line)
                except (BrokenPipeError, SandboxError):
                    self._broken = True
                    await self._broke("closed its standard input")
                    return
                self._size -= len(line)
            if self._closed:
                return
            self._news.clear()
            await self._news.wait()

    def close(self) -> None:
        self._closed = True
        self._news.set()

    async def aclose(self) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()


async def _drain(process: Process) -> None:
    with contextlib.suppress(SandboxError):
        while True:
            await asyncio.sleep(0)  # see Inbox
            if not await process.read(_CHUNK):
                return


def _direct(command: str) -> str:
    """A path without steps back: a sandbox does not show the folders that they lead through. A link at its end stays, as Python
    knows its environment by it."""
    path = Path(command)
    return str(path.parent.resolve() / path.name) if path.is_absolute() and ".." in path.parts else command


def _not_started(name: str, settings: MCPServerSettings, error: Exception) -> MCPUnavailable:
    where = "in the sandbox" if settings.sandbox else "on this machine"
    match error:
        case HandworkError():
            why, hint = error.what, error.hint
        case FileNotFoundError() if error.filename in (settings.command, _direct(settings.command)):
            why = f"there is no program {settings.command} {where}"
            hint = _SANDBOX_HINT if settings.sandbox else "install it, or name it by its whole path"
        case OSError():
            why, hint = f"{error.filename or settings.command}: {error.strerror or os.strerror(error.errno or 0)}", ""
        case _:
            why, hint = str(error), "look at its command and args"
    return MCPUnavailable(f"The MCP server {name} cannot be started: {why}", hint=hint, lasting=True)
