"""MCP servers of the network: streamable HTTP, and SSE for those of the old kind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from handwork.config import MCPServerSettings
from handwork.errors import MCPUnavailable
from handwork.mcp.address import Address, address_of
from handwork.mcp.bearer import Bearer
from handwork.mcp.failing import reason, shown
from handwork.mcp.sse import Sse
from handwork.mcp.surroundings import Surroundings
from handwork.mcp.web import client_over, way_to
from handwork.mcp.wire import LARGEST, Wire

_LISTEN = "subscriptions/listen"
_CLOSED, _NO_MESSAGE = -32000, -32700
_NOT_PARSED = "Failed to parse"
_BROKE_OFF = "SSE stream ended"
"""So the library begins what it says of an answer that will not come any more."""


class Http:
    """A Way (see transport.py) to a server of the network, by `settings.type` (http or sse), or by `kind` where that is known better.

    A server that answers the first message over HTTP as only those of the old kind do (400, 404, 405) is asked over SSE instead.
    """

    noise = 0

    def __init__(self, name: str, settings: MCPServerSettings, surroundings: Surroundings, *, kind: str = "") -> None:
        self.kind = kind or settings.type
        self._name, self._settings, self._surroundings = name, settings, surroundings
        self._stack = contextlib.AsyncExitStack()
        self._failure: MCPUnavailable | None = None
        self._pump: asyncio.Task[None] | None = None
        self._inbox: Any = None
        self._target: Any = None
        self._initialize: Any = None
        self._listening: set[Any] = set()

    async def __aenter__(self) -> tuple[Any, Any]:
        import anyio

        address = address_of(self._name, self._settings, self._surroundings.environ)
        self._surroundings.hide(address.secrets)
        self._inbox, reading = anyio.create_memory_object_stream[Any](0)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(reading.close)
            stack.callback(self._inbox.close)
            if self.kind == "sse":
                self._target = (await self._open_sse(stack, address)).send
            else:
                await self._open_streamable(stack, address)
            self._stack = stack.pop_all()
        return reading, _Outbox(self.send)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._inbox.close()
        if self._pump is not None:
            self._pump.cancel()
        try:  # before anything is awaited: a failure inside cancels that until its scope is left
            return await self._stack.__aexit__(kind, error, trace)
        finally:
            if self._pump is not None:
                await asyncio.gather(self._pump, return_exceptions=True)

    async def send(self, item: Any) -> None:
        """Send a message of the client."""
        method = getattr(item.message, "method", "")
        if method == "initialize":
            self._initialize = item
        elif method == _LISTEN:
            self._listening.add(item.message.id)
        await self._target(item)

    def failure(self, how: str = "") -> MCPUnavailable | None:
        """Why nothing comes any more; `how` says it, where nothing better is known."""
        if self._failure is None and how:
            return MCPUnavailable(f"The MCP server {self._name} {how}")
        return self._failure

    # ---- what is underneath

    async def _client(self, stack: contextlib.AsyncExitStack, address: Address, *, old: bool) -> tuple[Any, Wire]:
        environ = self._surroundings.environ
        signs = None if address.own_login else Bearer(address, self._surroundings, self._settings.oauth)
        if signs is not None:
            stack.push_async_callback(signs.close)
        wire = Wire(address, way_to(address.url, environ), signs, old=old)
        return await stack.enter_async_context(client_over(wire, address.headers)), wire

    async def _open_streamable(self, stack: contextlib.AsyncExitStack, address: Address) -> None:
        from mcp.client.streamable_http import streamable_http_client

        client, wire = await self._client(stack, address, old=False)
        wire.fail = self._fail
        streams = streamable_http_client(address.url, http_client=client, max_sse_event_size=LARGEST)
        coming, going = await stack.enter_async_context(streams)
        self._target = going.send
        self._pump = asyncio.create_task(self._carry(coming, wire, address), name=f"mcp {self._name} messages")

    async def _open_sse(self, stack: contextlib.AsyncExitStack, address: Address) -> Sse:
        client, wire = await self._client(stack, address, old=True)
        sse = Sse(client, address, wire, self._take)
        stack.push_async_callback(sse.close)
        await sse.open(self._fail)
        return sse

    async def _carry(self, coming: Any, wire: Wire, address: Address) -> None:
        """Hand on what comes, until a server turns out to be of the old kind. Whatever goes wrong ends the stream, for others wait for
        what would have come."""
        try:
            await self._carry_all(coming, wire, address)
        except Exception as error:
            self._fail(
                MCPUnavailable(f"The connection to the MCP server {self._name} was lost: {shown(reason(error), 500)}")
            )

    async def _carry_all(self, coming: Any, wire: Wire, address: Address) -> None:
        async for item in coming:
            if wire.turned_away is not None:
                await self._turn(address, wire.turned_away)
                return
            if self._broke_off(item):
                self._fail(
                    MCPUnavailable(f"The connection to the MCP server {self._name} was lost: its answer broke off")
                )
            self._put_into_words(item)
            await self._take(item)
        self._inbox.close()

    async def _turn(self, address: Address, refused: MCPUnavailable) -> None:
        """Ask over SSE instead; a server that does not answer there either has said before what is wrong."""
        try:
            sse = await self._open_sse(self._stack, address)
        except MCPUnavailable:
            self._fail(refused)
            return
        self._target, self.kind = sse.send, "sse"
        await sse.send(self._initialize)

    def _broke_off(self, item: Any) -> bool:
        """Whether an answer ends in its middle, as the library says it; a stream of news may, it is opened again."""
        error = getattr(getattr(item, "message", None), "error", None)
        if error is None or item.message.id in self._listening:
            return False
        return bool(error.code == _CLOSED and error.message.startswith(_BROKE_OFF))

    def _put_into_words(self, item: Any) -> None:
        """The library's report of an answer that is no message, which lists all that it might have been."""
        error = getattr(getattr(item, "message", None), "error", None)
        if error is not None and error.code == _NO_MESSAGE and error.message.startswith(_NOT_PARSED):
            error.message = f"What the MCP server {self._name} answered is no message of the protocol"

    async def _take(self, item: Any) -> None:
        """Give the client a message, if it still listens."""
        import anyio

        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._inbox.send(item)

    def _fail(self, failure: MCPUnavailable) -> None:
        """End the stream that the client reads; whatever waits for an answer fails with it."""
        self._failure = self._failure or failure
        self._inbox.close()


class _Outbox:
    """The stream that the client writes to; closing it ends nothing, leaving the way does."""

    def __init__(self, send: Callable[[Any], Awaitable[None]]) -> None:
        self.send = send

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *reason: object) -> None:
        return None

    async def aclose(self) -> None:
        """Nothing more is sent."""
