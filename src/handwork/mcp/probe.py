"""The first question of the protocol of 2026, answered for a server that is silent to it, so that the older handshake follows."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from handwork.tool.call_clock import CallClock

LONGEST = 10.0
"""Seconds that a server has for it, as the library gives them; half of its limit where that is shorter, so that the other half is left
for the handshake."""
_METHOD = "server/discover"
_NO_ANSWER = -32001


class Probe:
    """The SDK's stream of what a server says, with the answer that it owes put in after a while; `going` is the stream to it.

    Many servers of the older protocols say nothing to a request that they do not know before they are initialized. The library would
    wait ten seconds, whatever the limit of the connection is. An answer that comes late belongs to nobody, and is dropped there.
    """

    def __init__(self, coming: Any, going: Any, clock: CallClock, limit: float) -> None:
        self._coming, self._clock, self._seconds = coming, clock, min(LONGEST, limit / 2)
        self.going = _Going(going, self)
        self._settled = False
        self._asked: Any = None
        self._silence: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.Task[None] | None = None
        self._next: asyncio.Task[Any] | None = None
        """What is read already, or is just being read."""

    def sent(self, message: Any) -> None:
        """A message goes to the server."""
        if self._asked is None and getattr(message, "method", "") == _METHOD:
            self._asked = message.id
            self._timer = asyncio.create_task(self._wait(), name="mcp probe")

    async def _wait(self) -> None:
        try:
            async with self._clock.limit(self._seconds):
                await asyncio.Event().wait()
        except TimeoutError:
            if not self._silence.done():
                self._silence.set_result(None)

    def _settle(self) -> None:
        self._settled = True
        if self._timer is not None:
            self._timer.cancel()

    # ---- the stream

    async def __anext__(self) -> Any:
        if self._settled and self._next is None:
            return await self._coming.__anext__()
        reading = self._next = self._next or asyncio.create_task(self._coming.__anext__(), name="mcp probe reads")
        try:
            ends = {reading} if self._settled else {reading, self._silence}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            self._leave()
            raise
        if not reading.done():
            self._settle()
            return self._answer()
        self._next = None
        try:
            item = reading.result()
        except BaseException:
            self._settle()
            raise
        if self._asked is not None and getattr(item.message, "id", None) == self._asked:
            self._settle()
        return item

    def _answer(self) -> Any:
        """What the library makes of a server that does not answer, before its own time is over."""
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCError
        from mcp_types.jsonrpc import ErrorData

        error = ErrorData(code=_NO_ANSWER, message=f"no answer within {self._seconds:g} s")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=self._asked, error=error))

    def _leave(self) -> None:
        self._settle()
        if self._next is not None:
            self._next.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._next.cancel()

    @property
    def last_context(self) -> Any:
        return getattr(self._coming, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def receive(self) -> Any:
        from anyio import EndOfStream

        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise EndOfStream from None

    async def aclose(self) -> None:
        self._leave()
        await self._coming.aclose()

    async def __aenter__(self) -> Self:
        await self._coming.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> Any:
        self._leave()
        return await self._coming.__aexit__(*reason)


class _Going:
    """The SDK's stream to a server, which tells of what goes there."""

    def __init__(self, stream: Any, probe: Probe) -> None:
        self._stream, self._probe = stream, probe

    async def send(self, item: Any, /) -> None:
        self._probe.sent(item.message)
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> Any:
        return await self._stream.__aexit__(*reason)
