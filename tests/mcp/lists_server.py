"""A server in this process that speaks the real wire of 2025 and answers with exactly what a test wants, however wrong it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse
from mcp_types.jsonrpc import ErrorData

from handwork.mcp.mending import mended

GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
    "serverInfo": {"name": "lists", "version": "1"},
}


class ListsServer:
    """`results`: the result of each method, or a list of pages, or an error's code; `asked`: the methods that were called."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self.results = {"initialize": GREETING, **results}
        self.asked: list[str] = []

    def _answer(self, request: JSONRPCRequest) -> JSONRPCResponse | JSONRPCError:
        self.asked.append(request.method)
        found = self.results.get(request.method, -32601)
        if isinstance(found, int):
            return JSONRPCError(jsonrpc="2.0", id=request.id, error=ErrorData(code=found, message="Method not found"))
        if isinstance(found, list):
            at = int((request.params or {}).get("cursor") or 0)
            found = {**found[at], **({"nextCursor": str(at + 1)} if at + 1 < len(found) else {})}
        return JSONRPCResponse(jsonrpc="2.0", id=request.id, result=found)

    @asynccontextmanager
    async def transport(self) -> AsyncIterator[tuple[Any, Any]]:
        to_client, reading = anyio.create_memory_object_stream[Any](0)
        writing, from_client = anyio.create_memory_object_stream[Any](0)

        async def serve() -> None:
            async for sent in from_client:
                if isinstance(sent.message, JSONRPCRequest):
                    await to_client.send(SessionMessage(self._answer(sent.message)))

        async with anyio.create_task_group() as group, to_client, reading, writing, from_client:
            group.start_soon(serve)
            yield reading, writing
            group.cancel_scope.cancel()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Any]:
        async with Client(mended(self.transport()), mode="legacy") as client:
            yield client
