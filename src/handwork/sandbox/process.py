"""A program in the sandbox as we hold it: its streams, its end, and the end of its whole tree."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from typing import Any

from handwork.errors import SandboxError
from handwork.sandbox.base import Spent
from handwork.sandbox.capture import Drain
from handwork.sandbox.connection import Connection
from handwork.sandbox.inside import wire
from handwork.sandbox.limits import said

_DRAIN = 1 << 20
"""How much of a pipe is still read after its program ended: more than a pipe holds, yet an end in sight."""
_KILL_LIMIT = 10.0
_AGES = 1e12


class Program:
    """A Process of the protocol, and the ground under `exec`. `over` says that and why something of its tree was
    ended at a limit, or is ''."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection, self._number = connection, number
        self._loop = asyncio.get_running_loop()
        self.started: asyncio.Future[None] = self._loop.create_future()
        self.ended = asyncio.Event()
        self.gone = asyncio.Event()
        self.pid = 0
        self.returncode: int | None = None
        self.over = ""
        self._spent = Spent()
        self._failure: SandboxError | None = None
        self.output: int | None = None
        self.input: int | None = None
        self.drain: Drain | None = None
        """Its standard error, if that is kept apart."""
        self._rest = _DRAIN
        self._reading, self._writing = asyncio.Lock(), asyncio.Lock()
        self._waker: asyncio.Future[None] | None = None
        connection.watch_job(number, self._hear, self._lose)

    def __del__(self) -> None:
        self._close()

    # ---- the protocol

    @property
    def errors(self) -> str:
        return self.drain.tail().decode(errors="replace") if self.drain is not None else ""

    async def write(self, data: bytes) -> None:
        """Write all to its standard input. Raises BrokenPipeError when the program no longer reads."""
        async with self._writing:
            view = memoryview(data)
            while view:
                if self.input is None:
                    raise self._failure or BrokenPipeError("The program's standard input is closed")
                try:
                    view = view[os.write(self.input, view) :]
                except BlockingIOError:
                    await self._ready(self.input, writing=True)
                except OSError as error:
                    raise self._failure or BrokenPipeError("The program has ended") from error

    async def close_stdin(self) -> None:
        async with self._writing:
            if self.input is not None and self.input == self.output:
                await self._end_of_input()
            elif self.input is not None:
                os.close(self.input)
                self.input = None

    async def read(self, limit: int = 65536, *, beyond: bool = False) -> bytes:
        async with self._reading:
            while True:
                if self._failure is not None and self.returncode is None:
                    raise self._failure
                ended = self.ended.is_set() and not beyond
                if self.output is None or (self._rest <= 0 and not beyond):
                    return b""
                try:
                    data = os.read(self.output, max(1, min(limit, self._rest)))
                except BlockingIOError:
                    if ended:
                        return b""
                    await self._ready(self.output)
                    continue
                except OSError:  # a terminal says so that nobody is at its other side any more
                    data = b""
                if ended:
                    self._rest -= len(data)
                if not data:
                    self._rest = 0
                    self._close_ended()
                return data

    async def wait(self) -> int:
        await self.ended.wait()
        if self.returncode is None:
            raise self._failure or SandboxError("The program's end was not reported")
        return self.returncode

    async def signal(self, number: int) -> None:
        if not self.ended.is_set():
            self._connection.send(op="signal", job=self._number, number=number)

    async def kill(self, keep: Sequence[int] = ()) -> None:
        if self.gone.is_set() or not self._connection.alive:
            return
        try:
            async with asyncio.timeout(_KILL_LIMIT):
                if keep:
                    _nothing, fds = await self._connection.request(op="kill", job=self._number, keep=list(keep))
                    wire.close_all(fds)
                else:
                    self.order_kill()
                    await self.gone.wait()
        except TimeoutError as error:
            raise SandboxError(
                f"Processes of the program {self.pid} did not end when killed: the system holds them"
            ) from error
        except SandboxError:
            if self._connection.alive:
                raise

    async def descendants(self) -> list[int]:
        if self.gone.is_set():
            return []
        pids, fds = await self._connection.request(op="tree", job=self._number)
        wire.close_all(fds)
        return [pid for pid in pids if isinstance(pid, int)] if isinstance(pids, list) else []

    async def spent(self) -> Spent:
        if not self.gone.is_set() and self._connection.alive:
            with contextlib.suppress(SandboxError):
                found, fds = await self._connection.request(op="spent", job=self._number)
                wire.close_all(fds)
                self._count(found)
        return self._spent

    # ---- for those who start it

    def order_kill(self) -> None:
        """Have the whole tree killed, without waiting."""
        if not self.gone.is_set() and self._connection.alive:
            self._connection.send(op="kill", job=self._number)

    async def put_down(self) -> None:
        """Kill the tree and wait, also while our own task is being cancelled; never raises but for a second cancel."""
        self.order_kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KILL_LIMIT):
                await self.gone.wait()
        self._close()

    # ---- news

    def _hear(self, news: dict[str, Any], fds: list[int]) -> None:
        if news.get("pty") and fds and self.output is None:
            self.output = self.input = fds.pop()
            os.set_blocking(self.output, False)
        wire.close_all(fds)
        if isinstance(pid := news.get("pid"), int):
            self.pid = pid
            if not self.started.done():
                self.started.set_result(None)
        if isinstance(code := news.get("errno"), int) and not self.started.done():
            self.started.set_exception(StartError(code, str(news.get("what"))))
        self.over = said(news) or self.over
        self._count(news.get("spent"))
        if isinstance(code := news.get("exit"), int):
            self._end(code)
        if news.get("gone"):
            # Without an exit before it: something inside killed the leader, and with it the program.
            self._end(-9)
            if not self.started.done():
                self.started.set_exception(SandboxError("The program was ended while it started"))
            self._connection.forget_job(self._number)
            self._close_errors()
            self.gone.set()

    def _count(self, spent: Any) -> None:
        match spent:
            case [float() | int() as seconds, int() as memory] if 0 <= seconds < _AGES and 0 <= memory < 1 << 62:
                peak = max(memory, self._spent.peak_memory)
                self._spent = Spent(max(float(seconds), self._spent.cpu_seconds), peak)

    def _lose(self, failure: SandboxError) -> None:
        self._failure = failure
        if not self.started.done():
            self.started.set_exception(failure)
        self.ended.set()
        self.gone.set()
        self._wake()
        self._close()

    def _end(self, code: int) -> None:
        if not self.ended.is_set():
            self.returncode = code
            self.ended.set()
            self._wake()
            self._close_ended()

    # ---- descriptors

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    async def _ready(self, fd: int, writing: bool = False) -> None:
        """Until the descriptor can be used, or the program ended."""
        waker: asyncio.Future[None] = self._loop.create_future()

        def ready() -> None:
            if not waker.done():
                waker.set_result(None)

        if writing:
            self._loop.add_writer(fd, ready)
        else:
            self._waker = waker
            self._loop.add_reader(fd, ready)
        try:
            await waker
        finally:
            # Whoever closed the descriptor meanwhile has taken it out of the loop already.
            if fd == (self.input if writing else self.output):
                (self._loop.remove_writer if writing else self._loop.remove_reader)(fd)

    async def _end_of_input(self) -> None:
        # A terminal has no half to close: its end of file is a character.
        with contextlib.suppress(OSError):
            if self.input is not None:
                os.write(self.input, b"\x04")

    def _close_ended(self) -> None:
        # A program may close its terminal a moment before it exits; a hang-up from us in between would become its exit code.
        if self._rest <= 0 and (self.ended.is_set() or self.input != self.output):
            self._close_output()

    def _close_output(self) -> None:
        if self.output is None:
            return
        fd, self.output = self.output, None
        if self.input == fd:
            self.input = None
            self._forget(fd, writer=True)
        self._forget(fd)
        os.close(fd)

    def _forget(self, fd: int, writer: bool = False) -> None:
        if not self._loop.is_closed():
            (self._loop.remove_writer if writer else self._loop.remove_reader)(fd)

    def _close_errors(self) -> None:
        # Whatever is still in the pipe belongs to what it said last.
        if self.drain is not None:
            self.drain.finish()

    def _close(self) -> None:
        self._close_output()
        self._close_errors()
        if self.input is not None:
            fd, self.input = self.input, None
            self._forget(fd, writer=True)
            os.close(fd)


class StartError(Exception):
    """The program could not be started: the error's number, and what of it was to blame (argv, cwd or start)."""

    def __init__(self, number: int, what: str) -> None:
        self.number, self.what = number, what
        super().__init__(number, what)
