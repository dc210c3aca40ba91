"""One http:// request and its answer, passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from handwork.sandbox.network.body import pass_on
from handwork.sandbox.network.messages import Framing, Request, Response, read_response
from handwork.sandbox.network.refusal import Refusal
from handwork.sandbox.network.stream import Stream

_IDLE = 300.0
"""Seconds in which nothing moves: a server that thinks long may be asked by a client that waits as long."""


class Exchange:
    """A request on its way; `answered` is whether the client got a part of an answer."""

    def __init__(self, request: Request, client: Stream, server: Stream) -> None:
        self._request, self._client, self._server = request, client, server
        self.answered = False

    async def run(self, head: bytes) -> bool:
        """Send the request with this head, and the answer back; returns whether the client's connection can be used again.

        Raises Refusal, OSError, IncompleteReadError and LimitOverrunError.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_IDLE) as limit:
                await self._server.send(head)
                return await self._both(lambda: limit.reschedule(loop.time() + _IDLE))
        except TimeoutError:
            raise Refusal(504, f"{self._request.place} does not go on") from None

    async def _both(self, touch: Callable[[], None]) -> bool:
        up = asyncio.ensure_future(self._send_body(touch))
        down = asyncio.ensure_future(self._answer(touch))
        try:
            await asyncio.wait([up, down], return_when=asyncio.FIRST_COMPLETED)
            if up.done() and not down.done():
                up.result()
            goes_on = await down
            return goes_on and up.done() and up.exception() is None
        finally:
            up.cancel()
            down.cancel()
            await asyncio.gather(up, down, return_exceptions=True)

    async def _send_body(self, touch: Callable[[], None]) -> None:
        try:
            await pass_on(self._client.reader, self._server.writer, self._request.framing, touch)
        except (ConnectionError, BrokenPipeError):
            return  # the server wants no more of it: what it says comes the other way

    async def _answer(self, touch: Callable[[], None]) -> bool:
        request = self._request
        while (response := await self._response()).status < 200:
            touch()
            if response.status == 101:
                raise Refusal(502, "the server changes the protocol, which nobody asked for")
            if request.version == "HTTP/1.1":
                await self._client.send(response.head(0, request.method, goes_on=True))
        framing = response.framing(request.method)
        plainly = request.version == "HTTP/1.0" and framing == "chunked"
        goes_on = request.goes_on and framing != "until the end"
        await self._pass_on(response, "until the end" if plainly else framing, goes_on, touch, plainly=plainly)
        return goes_on

    async def _pass_on(
        self, response: Response, framing: Framing, goes_on: bool, touch: Callable[[], None], *, plainly: bool
    ) -> None:
        self.answered = True
        await self._client.send(response.head(framing, self._request.method, goes_on=goes_on))
        touch()
        body: Framing = "chunked" if plainly else framing
        await pass_on(self._server.reader, self._client.writer, body, touch, plainly=plainly)

    async def _response(self) -> Response:
        try:
            return read_response(await self._server.reader.readuntil(b"\r\n\r\n"))
        except asyncio.LimitOverrunError:
            raise Refusal(502, "the head of the answer is too long") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Refusal(502, f"{self._request.place} closed the connection without an answer") from None
