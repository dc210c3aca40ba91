"""One connection to the proxy: its requests, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from handwork.sandbox.network.exchange import Exchange
from handwork.sandbox.network.gate import Gate
from handwork.sandbox.network.messages import Request, read_request
from handwork.sandbox.network.refusal import Refusal
from handwork.sandbox.network.stream import Stream
from handwork.sandbox.network.tunnel import relay
from handwork.sandbox.network.way import Ways

T = TypeVar("T")
_HEAD_LIMIT = 120.0
"""Seconds until a request is there, and between two."""
_NOT_REACHED = (502, 504)
_LEFTOVERS, _LINGER = 1 << 20, 2.0
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Visitor:
    """A client inside the sandbox: nothing that it sends is trusted."""

    def __init__(self, client: Stream, gate: Gate, ways: Ways) -> None:
        self._client, self._gate, self._ways = client, gate, ways

    async def serve(self) -> None:
        """Answer requests until one of us ends. Never raises for what a client or server does."""
        try:
            while await self._next():
                pass
            await self._client.close()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # there is nobody left to tell
        finally:
            self._client.abort()

    async def join(self, host: str, port: int) -> None:
        """Be joined with one place, whatever is spoken. Never raises for what a client or server does."""
        try:
            await self._while_there(self._gate.check(host, port))
            server = await self._ways.tunnel(host, port)
            try:
                await relay(self._client, server, host, port, self._gate)
            finally:
                server.abort()
        except (Refusal, OSError, TimeoutError):
            pass  # a connection that ends is all that can be said to who does not speak to a proxy
        finally:
            self._client.abort()

    async def _next(self) -> bool:
        """Serve one request; whether there can be another."""
        request: Request | None = None
        exchange: list[Exchange] = []
        try:
            request = await self._request()
            if request is None:
                return False
            await self._while_there(self._gate.check(request.host, request.port))
            if request.method == "CONNECT":
                await self._tunnel(request)
                return False
            return await self._exchange(request, exchange)
        except Refusal as refusal:
            if exchange and exchange[0].answered:
                self._client.abort()  # half an answer must not look like a whole one
            else:
                await self._refuse(refusal, request)
        return False

    async def _request(self) -> Request | None:
        async with asyncio.timeout(_HEAD_LIMIT):
            try:
                return read_request(await self._client.reader.readuntil(b"\r\n\r\n"))
            except asyncio.LimitOverrunError:
                raise Refusal(431, "the head of the request is too long") from None
            except asyncio.IncompleteReadError:
                return None

    async def _tunnel(self, request: Request) -> None:
        try:
            server = await self._ways.tunnel(request.host, request.port)
        except Refusal as refusal:
            if refusal.status in _NOT_REACHED:
                self._gate.failed(request.place, refusal.why)
            raise
        try:
            await self._client.send(_ESTABLISHED)
            await relay(self._client, server, request.host, request.port, self._gate)
        finally:
            server.abort()

    async def _exchange(self, request: Request, begun: list[Exchange]) -> bool:
        server, head = await self._ways.plain(request)
        try:
            begun.append(exchange := Exchange(request, self._client, server))
            return await exchange.run(head)
        finally:
            server.abort()

    async def _refuse(self, refusal: Refusal, request: Request | None) -> None:
        """Say it, and let the client say the rest of what it has begun to: closing on that would take the answer from it."""
        await self._client.send(refusal.answer(body=request is None or request.method != "HEAD"))
        self._client.writer.write_eof()
        left = _LEFTOVERS
        async with asyncio.timeout(_LINGER):
            while left > 0 and (data := await self._client.reader.read(_LEFTOVERS)):
                left -= len(data)

    async def _while_there(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something that may take a person's time, unless the client goes meanwhile."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._client.reader.over.wait())
        try:
            await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ConnectionResetError("the client has gone")
            return task.result()
        finally:
            gone.cancel()
            task.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)
