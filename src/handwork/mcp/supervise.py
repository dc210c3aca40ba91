"""The life of a connection to an MCP server: one task connects, notices its loss, and connects again with growing pauses."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Literal, TypeAlias

from handwork.config import MCPServerSettings
from handwork.errors import HandworkError, MCPLoginNeeded, MCPUnavailable
from handwork.mcp.failing import innermost, reason, shown
from handwork.mcp.live import Live
from handwork.mcp.offer import Offer
from handwork.mcp.roots import roots_of
from handwork.mcp.surroundings import Surroundings
from handwork.mcp.transport import Way, transport
from handwork.tool.uncancelled import uncancelled

State: TypeAlias = Literal["idle", "connecting", "ready", "lost", "gone", "closed"]
"""idle: nobody needed it yet. lost: it will be tried again. gone: it will not, `failure` says why."""
Sleep: TypeAlias = Callable[[float], Awaitable[None]]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_LONGEST_WAIT = 3600.0
"""Seconds that are waited at most because a server asked for it; one that wants more is given up."""
_MOST_FAILURES = 5
_LASTED = 30.0
"""Seconds after which a connection was one, even if nobody asked anything."""
_CLOSED_CODE = -32000
_OTHER = {"auto": "legacy", "legacy": "auto"}
"""The way to begin after one of them was not answered: some servers are silent at the newer protocol's first question."""
_KEPT = 50


def _begin(protocol: str) -> str:
    """How to begin with a server that has spoken this protocol: those of the older ones need not be asked for the newer again."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return "auto" if protocol in MODERN_PROTOCOL_VERSIONS else "legacy"


class Supervised:
    """A connection's state and the task behind it; what is asked of the server is Connection's."""

    def __init__(self, name: str, settings: MCPServerSettings, surroundings: Surroundings, *, sleep: Sleep) -> None:
        self.name, self.settings = name, settings
        self.state: State = "idle"
        self.failure = ""
        """Why there is no connection, in words for a person; '' while there is one."""
        self.offer: Offer | None = None
        """What it offered when it was last asked; None before."""
        self.stale = False
        """It said that its lists changed since."""
        self.banners = 0
        """Lines on its standard output that were no messages."""
        self._lacks: dict[str, str] = {}
        self.log: deque[str] = deque(maxlen=_KEPT)
        """What it logged, where that belonged to no call."""
        self._surroundings, self._sleep = surroundings, sleep
        self._task: asyncio.Task[None] | None = None
        self._live: Live | None = None
        self._trying: Live | None = None
        self._error = MCPUnavailable(f"The MCP server {name} is not connected")
        self._outcome: asyncio.Future[None] | None = None
        """Of the attempt that runs, or comes next."""
        self._stop = asyncio.Event()
        self._answered = False
        """The connection was good for something."""
        self._mode, self._kind = "auto", ""
        """How to begin, and by which transport, as far as an earlier connection has shown it."""
        self._requests = 0
        """How many are under way."""

    def start(self) -> None:
        """Begin to connect, if nobody has; needs a running loop."""
        if self.state == "idle":
            self.state = "connecting"
            self._outcome = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._supervise(), name=f"mcp {self.name}")

    @property
    def error(self) -> MCPUnavailable:
        """Why there is no connection, with what helps."""
        return self._again(self._error)

    # ---- for those who ask

    async def _reached(self) -> Live:
        """The connection, once there is one. Raises MCPUnavailable: the attempt that runs has failed, or takes too long."""
        self.start()
        seconds = self.settings.timeout
        try:
            async with self._surroundings.clock.limit(seconds):
                while True:
                    if self._live is not None and not self._live.over.is_set():
                        return self._live
                    if self.state in ("gone", "closed") or self._outcome is None:
                        raise self._again(self._error)
                    if self._live is not None:
                        self._lose(self._live.failure())
                    if self.state == "lost" and self._error.retry_after > seconds:
                        raise self._again(self._error)  # it is not asked before, so that nobody need wait for it
                    await asyncio.shield(self._outcome)
        except TimeoutError:
            raise self._late(seconds) from None
        except MCPUnavailable as error:
            raise self._again(error) from None

    def _again(self, error: MCPUnavailable) -> MCPUnavailable:
        """The same error for one more: each who raises it has a traceback of their own."""
        kind = MCPLoginNeeded if isinstance(error, MCPLoginNeeded) else MCPUnavailable
        return kind(error.what, hint=error.hint, lasting=error.lasting, retry_after=error.retry_after)

    def _late(self, seconds: float) -> MCPUnavailable:
        if self._trying is not None:
            return self._explain(TimeoutError(), self._trying, False)
        return MCPUnavailable(f"There was no connection within {seconds:g} s, after this: {self.failure}")

    # ---- the task

    async def _supervise(self) -> None:
        failures = 0
        try:
            while True:
                self._answered = False
                error = await self._attempt()
                if self._stop.is_set():
                    return
                failures = 1 if self._answered else failures + 1
                if error.lasting or failures >= _MOST_FAILURES or error.retry_after > _LONGEST_WAIT:
                    self._fail("gone", error)
                    return
                self._lose(error)
                await self._sleep(max(min(_FIRST_PAUSE * 2 ** (failures - 1), _LONGEST_PAUSE), error.retry_after))
                self.state = "connecting"
        finally:
            if self.state != "gone":
                self._fail("closed", MCPUnavailable(f"The connection to the MCP server {self.name} is closed"))

    async def _attempt(self) -> MCPUnavailable:
        """One connection from its beginning to its end; returns how it ended.

        A program that falls over the newer protocol's first question is started once more, for the older one; servers of the network
        are asked for it in the same connection. One that is no longer of the kind that it turned out to be is asked as its entry says.
        """
        found = self._kind
        programs = self.settings.type == "stdio"
        modes = ["auto", "legacy"] if self._mode == "auto" and programs else [self._mode]
        error = self._error
        for mode in modes:
            error, mute = await self._connection(mode)
            if error.lasting or not mute or self._stop.is_set():
                break
        if found not in ("", self.settings.type) and not self._kind and not self._stop.is_set():
            error, _ = await self._connection(self._mode)
        return error

    async def _connection(self, mode: str) -> tuple[MCPUnavailable, bool]:
        """How a connection ended, and whether the program ended before it said anything."""
        try:
            way = transport(self.name, self.settings, self._surroundings, kind=self._kind)
            live = self._trying = self._live_over(way, mode)
        except Exception as error:  # whoever waits is told: this task has nobody else to tell
            return MCPUnavailable(
                f"The MCP server {self.name} cannot be started: {shown(reason(error), 500)}", lasting=True
            ), False
        began = asyncio.get_running_loop().time()
        try:
            async with AsyncExitStack() as stack:
                async with self._surroundings.clock.limit(self.settings.timeout):
                    await stack.enter_async_context(live)
                    self._mode = mode
                    self.stale = False
                    offer = await live.offer()
                live.listen()
                self._kind, self._mode = way.kind, _begin(offer.protocol)
                self._be_ready(live, offer)
                await self._until_over(live)
                self._lose(live.failure())
                self._answered = self._answered or asyncio.get_running_loop().time() - began > _LASTED
            return self._error, False
        except Exception as error:
            self._kind = self._kind if live.shaken else ""  # it may have become another one
            if not live.shaken:
                self._mode = _OTHER[mode] if isinstance(error, TimeoutError) else "auto"
            closed = live.ended.is_set() and getattr(innermost(error), "code", 0) == _CLOSED_CODE
            return self._explain(innermost(error), live, closed), closed and not live.shaken
        finally:
            self._trying = None
            self.banners += way.noise

    def _live_over(self, way: Way, mode: str) -> Live:
        roots, limit = roots_of(self.settings, self._surroundings.workspace), self.settings.timeout
        return Live(self.name, way, self._surroundings, self, mode=mode, limit=limit, roots=roots, sleep=self._sleep)

    async def _until_over(self, live: Live) -> None:
        ends = [asyncio.create_task(live.over.wait()), asyncio.create_task(self._stop.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    def _explain(self, error: BaseException, live: Live, closed: bool) -> MCPUnavailable:
        """Why a connection could not be made."""
        match error:
            case MCPUnavailable():
                return error
            case HandworkError():
                return MCPUnavailable(f"The MCP server {self.name} cannot be reached: {error.what}", hint=error.hint)
            case TimeoutError():
                hint = f'a slow one may have more: "timeout" of {self.name} in mcp.json'
                said = live.failure(f"did not answer within {self.settings.timeout:g} s")
                return MCPUnavailable(said.what, hint=hint)
        if closed:
            return live.failure()
        said = live.failure(f"does not connect: {shown(reason(error), 500)}")
        return MCPUnavailable(said.what, hint=said.hint, lasting=isinstance(error, RuntimeError))

    # ---- states

    def _be_ready(self, live: Live, offer: Offer) -> None:
        self.state, self.failure, self.offer, self._live, self._trying = "ready", "", offer, live, None
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(None)

    def _lose(self, error: MCPUnavailable) -> None:
        """There is no connection, for now."""
        if self.state in ("lost", "gone", "closed"):
            return
        self._fail("lost", error)
        self._outcome = asyncio.get_running_loop().create_future()

    def _fail(self, state: State, error: MCPUnavailable) -> None:
        self.state, self.failure, self._error, self._live = state, error.what, error, None
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_exception(error)
            self._outcome.exception()  # asked here, so that nobody has to

    # ---- the end

    async def close(self) -> None:
        """End it in order: no process, task or socket is left. From any task, as often as one likes."""
        first = not self._stop.is_set()
        self._stop.set()
        if self._task is None:
            self._fail("closed", MCPUnavailable(f"The connection to the MCP server {self.name} is closed"))
            return
        if first and self.state != "ready":
            self._task.cancel()
        _, cancelled = await uncancelled(asyncio.wait([self._task]))  # nobody may leave the server behind
        if cancelled:
            raise asyncio.CancelledError

    # ---- what the server says unasked

    @property
    def asking(self) -> bool:
        return self._requests > 0

    @property
    def left_out(self) -> list[str]:
        """What of its lists cannot be used, each as a sentence: for who looks at the server, as no user of it can do anything there."""
        return [text for text in self._lacks.values() if text]

    def changed(self) -> None:
        self.stale = True

    def lacks(self, of: str, text: str) -> None:
        self._lacks[of] = text

    async def logged(self, level: str, text: str) -> None:
        self.log.append(f"{level}: {text}")
