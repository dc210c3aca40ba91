"""The connection to one MCP server: one supervised task owns the client, everybody else asks it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

from handwork.config import MCPServerSettings
from handwork.errors import HandworkError, MCPLoginNeeded, MCPLost, MCPRefused, MCPServerError, MCPUnavailable
from handwork.mcp.answers import answer_of, contents_of, messages_of
from handwork.mcp.content import Answer, Embedded, PromptMessage
from handwork.mcp.failing import innermost, reason, shown
from handwork.mcp.live import Live
from handwork.mcp.offer import Offer, ResourceOffer
from handwork.mcp.supervise import Sleep, State, Supervised
from handwork.mcp.surroundings import Surroundings
from handwork.schema import JSON

__all__ = ["Connection", "Progress", "State"]

Progress: TypeAlias = Callable[[str], Awaitable[None]]
R = TypeVar("R")

_LONGEST_CALL = 3600.0
"""Seconds that a call may take that goes on telling its progress."""
_CLOSED, _TIMED_OUT, _NO_ANSWER = -32000, -32001, -32603
_CLOSED_WORDS = "Connection closed"
"""What the library says where there is nobody to send anything to any more."""
_LOUD = ("warning", "error", "critical", "alert", "emergency")
_EVERY = 0.05
"""Seconds between two words of progress that are passed on; those in between only show that it lives."""


class Connection(Supervised):
    """One server's client.

    Made without doing anything; `start` begins to connect in the background, and so does the first use. What is asked while it
    connects waits, at most `settings.timeout` seconds by the session's clock. A connection that is lost is tried again with
    growing pauses; a call that was under way then is never repeated.

    Every request raises MCPUnavailable (there is no connection; MCPLost where it went on the way), MCPLoginNeeded, MCPRefused (the
    server's own error, or it did not answer in time, code -32001), and a cancelled one is cancelled at the server, too.
    """

    def __init__(
        self,
        name: str,
        settings: MCPServerSettings,
        surroundings: Surroundings,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        super().__init__(name, settings, surroundings, sleep=sleep)
        self._under_way: list[_Telling] = []
        self._reading = asyncio.Lock()

    async def ready(self) -> Offer:
        """Wait until it is connected and its lists are read."""
        await self._reached()
        assert self.offer is not None
        return self.offer

    async def refresh(self) -> Offer:
        """Ask for its lists anew."""
        async with self._reading:
            return await self._read_again()

    async def current(self) -> Offer:
        """What it offers now: its lists are asked for anew if it said that they changed, once for all who ask meanwhile."""
        await self._reached()
        async with self._reading:
            return await self._read_again() if self.stale or self.offer is None else self.offer

    async def _read_again(self) -> Offer:
        live = await self._reached()
        self.stale = False  # before they are read: what changes meanwhile makes it stale again
        try:
            self.offer = await self._asked(live, "its lists", live.offer())
        except BaseException:
            self.stale = True
            raise
        return self.offer

    async def call(self, tool: str, arguments: Mapping[str, JSON], *, progress: Progress | None = None) -> Answer:
        """Call a tool; `progress` is told what it says meanwhile."""
        live = await self._reached()
        async with self._telling(progress) as telling:
            send = partial(live.client.call_tool, tool, dict(arguments), progress_callback=telling.heard)
            return answer_of(await self._asked(live, f"the call of {tool}", live.answer(send), telling))

    async def resources(self) -> tuple[ResourceOffer, ...]:
        """Its resources and their templates."""
        live = await self._reached()
        return await self._asked(live, "its resources", live.resources())

    async def read(self, uri: str) -> tuple[Embedded, ...]:
        """The content of a resource."""
        live = await self._reached()
        sent = live.answer(partial(live.client.read_resource, uri))
        return contents_of(await self._asked(live, f"the resource {shown(uri)}", sent))

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> tuple[PromptMessage, ...]:
        """A prompt with its arguments put in."""
        live = await self._reached()
        sent = live.answer(partial(live.client.get_prompt, name, dict(arguments)))
        return messages_of(await self._asked(live, f"the prompt {shown(name)}", sent))

    # ---- one request

    async def _asked(self, live: Live, what: str, answer: Awaitable[R], telling: _Telling | None = None) -> R:
        """The answer to a request, within its time; every failure as an error of ours."""
        clock, seconds = self._surroundings.clock, self.settings.timeout
        if not self._requests:
            live.patience.begins()
        self._requests += 1
        try:
            async with clock.limit(_LONGEST_CALL), clock.limit(seconds) as limit:
                if telling is not None:
                    telling.lives = lambda: clock.restart(limit, seconds)
                found = await answer
        except Exception as error:
            raise self._failed(live, what, innermost(error)) from error
        finally:
            self._requests -= 1
        self._answered = True
        return found

    def _failed(self, live: Live, what: str, error: BaseException) -> MCPServerError:
        if isinstance(error, MCPServerError):
            return error
        if isinstance(error, TimeoutError):
            said = f"The MCP server {self.name} did not answer within {self.settings.timeout:g} s ({what})"
            return MCPRefused(
                said, hint=f'a slow one may have more: "timeout" of {self.name} in mcp.json', code=_TIMED_OUT
            )
        code = getattr(error, "code", None)
        if not isinstance(code, int):
            why = error.what if isinstance(error, HandworkError) else reason(error)
            return MCPRefused(
                f"What the MCP server {self.name} answered cannot be used: {shown(why, 500)}", code=_NO_ANSWER
            )
        if code == _CLOSED and (live.over.is_set() or str(error) == _CLOSED_WORDS):
            return self._lost(live, what)
        self._answered = True
        return MCPRefused(shown(str(error), 4000) or f"error {code}", code=code)

    def _lost(self, live: Live, what: str) -> MCPUnavailable:
        if self._stop.is_set():
            return MCPLost(f"The connection to the MCP server {self.name} was closed")
        said = live.failure()
        if isinstance(said, MCPLoginNeeded):
            return said  # it was refused, so it was not done
        return MCPLost(
            f"{said.what.rstrip('.')}. Whether it has done what it was asked for ({what}) is not known", hint=said.hint
        )

    # ---- what it says meanwhile

    @asynccontextmanager
    async def _telling(self, progress: Progress | None) -> AsyncIterator[_Telling]:
        telling = _Telling(progress)
        self._under_way.append(telling)
        try:
            yield telling
        finally:
            self._under_way.remove(telling)

    async def logged(self, level: str, text: str) -> None:
        """What it logs while one call is under way belongs to that call."""
        alone = self._under_way[0] if len(self._under_way) == 1 else None
        if level not in _LOUD or alone is None or not await alone.tell(f"{level}: {text}"):
            await super().logged(level, text)


class _Telling:
    """What a server tells while it works on one call."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.lives: Callable[[], None] = lambda: None
        """Called with each sign of life."""
        self._last = float("-inf")

    async def heard(self, done: float, total: float | None, message: Any) -> None:
        self.lives()
        if self._is_due():  # to put a flood of them into words takes longer than to read it
            await self.tell(_words(done, total, message if isinstance(message, str) else ""))

    async def tell(self, text: str) -> bool:
        """Pass on a word, if somebody hears it and the last one is not just said."""
        if self.progress is None or not self._is_due():
            return False
        self._last = asyncio.get_running_loop().time()
        await self.progress(text)
        return True

    def _is_due(self) -> bool:
        return self.progress is not None and asyncio.get_running_loop().time() - self._last >= _EVERY


def _words(done: float, total: float | None, message: str) -> str:
    count = f"{done:g}/{total:g}" if total is not None else f"{done:g}"
    return f"{shown(message, 1000)} ({count})" if message.strip() else count
