"""MCP servers of the old kind: a stream of events brings their messages, each of ours is a POST to where they say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from handwork.errors import MCPUnavailable
from handwork.mcp import http_words
from handwork.mcp.address import Address
from handwork.mcp.amount import MOST_VALUES, TooMany
from handwork.mcp.lines import messages
from handwork.mcp.wire import LARGEST, Wire

_PATIENCE = 30.0
"""Seconds that a server has to say where our messages go."""


class Sse:
    """One connection; made without doing anything, and opened by `open`. `take` is given each message of the server."""

    def __init__(self, client: Any, address: Address, wire: Wire, take: Callable[[Any], Any]) -> None:
        self._client, self._address, self._wire, self._take = client, address, wire, take
        self._stream: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._endpoint = ""

    async def open(self, fail: Callable[[MCPUnavailable], None]) -> None:
        """Begin, and wait until the server says where our messages go; raises MCPUnavailable. Later failures go to `fail`."""
        import httpx2

        headers = {"accept": "text/event-stream", "cache-control": "no-store"}
        try:
            async with asyncio.timeout(_PATIENCE):
                response = await self._request("GET", self._address.url, headers=headers)
                self._stream = response
                events = aiter(httpx2.EventSource(response, max_event_size=LARGEST))
                self._endpoint = await self._first(events)
        except TimeoutError:
            raise MCPUnavailable(
                f"The MCP server {self._address.name} at {self._address.shown} did not begin within {_PATIENCE:g} s"
            ) from None
        except httpx2.HTTPError as error:
            raise http_words.unreachable(self._address, error) from None
        self._wire.fail = fail
        self._reader = asyncio.create_task(self._read(events, fail), name=f"mcp {self._address.name} events")

    async def send(self, item: Any) -> None:
        """Post a message; one that the server does not take is answered as if it had said so."""
        import httpx2
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter
        from pydantic import ValidationError

        body = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        try:
            response = await self._request("POST", self._endpoint, json=body)
            refusal = await response.aread() if response.status_code >= 400 else b""
            await response.aclose()
        except httpx2.HTTPError:
            return  # the wire has told what it was
        if refusal:
            try:
                answer = jsonrpc_message_adapter.validate_json(refusal, by_name=False)
            except ValidationError:
                return
            await self._take(SessionMessage(answer))

    async def close(self) -> None:
        """End the stream."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        if self._stream is not None:
            await self._stream.aclose()

    async def _request(self, method: str, url: str, **parts: Any) -> Any:
        """A request, along redirects within the origin, which are all that the wire lets through."""
        request = self._client.build_request(method, url, **parts)
        for _ in range(5):
            response = await self._client.send(request, stream=True, follow_redirects=False)
            if response.next_request is None:
                break
            await response.aclose()
            request = response.next_request
        return response

    async def _first(self, events: Any) -> str:
        """The address of our messages: on the server's own origin, which the wire holds."""
        kind = self._stream.headers.get("content-type", "").partition(";")[0].strip().lower()
        if self._stream.status_code != 200 or kind != "text/event-stream":
            raise http_words.no_messages(self._address, kind)
        async for event in events:
            if event.event == "endpoint":
                import httpx2

                try:
                    return str(httpx2.URL(self._address.url).join(event.data.strip()))
                except httpx2.InvalidURL:
                    break
        raise MCPUnavailable(f"The MCP server {self._address.name} did not say where messages go", lasting=True)

    async def _read(self, events: Any, fail: Callable[[MCPUnavailable], None]) -> None:
        import httpx2
        from mcp.shared.message import SessionMessage

        why = "it ended its stream"
        try:
            async for event in events:
                for message in messages(event.data.strip().encode()) if event.event == "message" else ():
                    await self._take(SessionMessage(message))
        except httpx2.SSEError as error:
            if isinstance(error.__cause__, TooMany):
                return fail(http_words.too_many(self._address, MOST_VALUES))
            return fail(http_words.too_large(self._address, LARGEST))
        except httpx2.HTTPError as error:
            return fail(http_words.unreachable(self._address, error))
        fail(MCPUnavailable(f"The connection to the MCP server {self._address.name} was lost: {why}"))
        return None
