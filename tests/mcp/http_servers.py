"""Servers of the network for tests: the mcp package's own over HTTP and SSE, and one that misbehaves as a test says."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from aiohttp import web

from handwork.config import MCPServerSettings
from handwork.mcp.connection import Connection
from handwork.mcp.supervise import Sleep
from handwork.mcp.surroundings import Surroundings
from handwork.sandbox.base import Process

Answer: TypeAlias = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]
TOOL = {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object", "properties": {"text": {}}}}


# ---- the mcp package's own


@contextmanager
def own_server(
    kind: str = "http",
    *,
    stateless: bool = False,
    begun: threading.Event | None = None,
    gone: threading.Event | None = None,
) -> Iterator[str]:
    """The mcp package's server, with tools `echo`, `large` (that many bytes) and `wait`, which says when it has begun and was cancelled;
    at the address that is given."""
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("sample")

    @server.tool()
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool()
    def large(size: int) -> str:
        """As many letters."""
        return "x" * size

    @server.tool()
    async def wait() -> str:
        """Never end."""
        try:
            if begun:
                begun.set()
            await asyncio.Event().wait()
        finally:
            if gone:
                gone.set()
        return ""

    app = server.sse_app() if kind == "sse" else server.streamable_http_app(stateless_http=stateless)
    listening = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(
        uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1, ws="none", lifespan="on")
    )
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/{'sse' if kind == 'sse' else 'mcp'}"
    finally:
        running.should_exit = True
        thread.join(10)
        listening.close()
        assert not thread.is_alive()


# ---- one that misbehaves


class Plain:
    """A server of the handshake era that answers as `answers` says for a method, else as it should; it keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        """HTTP method, JSON-RPC method and headers of each request."""
        self.session = "session-1"
        self.url = self.origin = ""
        self.called = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        message = json.loads(await request.read() or b"{}") if request.method == "POST" else {}
        method = message.get("method", request.method)
        self.seen.append((request.method, method, {name.lower(): value for name, value in request.headers.items()}))
        if method == "tools/call":
            self.called.set()
        if answer := self.answers.get(method) or self.answers.get("*"):
            return await answer(request, message)
        return self.usual(request, message)

    def usual(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        """What a good server answers."""
        method = message.get("method", "")
        if request.method != "POST" or "id" not in message:
            return web.Response(status=202 if request.method == "POST" else 405)
        session = request.headers.get("mcp-session-id")
        if session and session != self.session:
            return web.Response(status=404, text="no such session")
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "plain", "version": "1"},
            },
            "tools/list": {"tools": [TOOL]},
            "tools/call": {
                "content": [{"type": "text", "text": message.get("params", {}).get("arguments", {}).get("text", "")}]
            },
        }
        if method not in results:
            return web.json_response(
                {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}
            )
        headers = {"mcp-session-id": self.session} if method == "initialize" else {}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": results[method]}, headers=headers)

    def asked(self, method: str) -> int:
        """How often it was asked this."""
        return sum(asked == method for _, asked, _ in self.seen)


def says(status: int, body: bytes | str = b"", headers: dict[str, str] | None = None) -> Answer:
    """An answer of this status and nothing else."""

    async def answer(request: web.Request, message: dict[str, Any]) -> web.Response:
        data = body.encode() if isinstance(body, str) else body
        return web.Response(status=status, body=data, headers={"Content-Type": "text/plain", **(headers or {})})

    return answer


@asynccontextmanager
async def plain_server() -> AsyncIterator[Plain]:
    """A Plain at work, on every path."""
    plain = Plain()
    app = web.Application(client_max_size=1 << 27)
    app.router.add_route("*", "/{path:.*}", plain.handle)
    async with serving(app) as origin:
        plain.origin, plain.url = origin, f"{origin}/mcp"
        yield plain


@asynccontextmanager
async def serving(app: web.Application) -> AsyncIterator[str]:
    """An aiohttp application at work on 127.0.0.1; gives its origin."""
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server = site._server
    assert isinstance(server, asyncio.Server)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        await runner.cleanup()


# ---- our side


async def nothing_starts(*_: Any, **__: Any) -> Process:
    raise AssertionError("a server of the network starts no program")


def around(home: Path, **more: Any) -> Surroundings:
    """Surroundings without a sandbox and without a person."""
    given: dict[str, Any] = {"notify": lambda level, text: None, "workspace": "/", "environ": {}} | more
    return Surroundings(spawn=nothing_starts, home=home, **given)


@asynccontextmanager
async def connected(
    url: str, home: Path, *, around_it: Surroundings | None = None, sleep: Sleep | None = None, **settings: Any
) -> AsyncIterator[Connection]:
    """A connection by these settings; waits between attempts take no time."""

    async def at_once(seconds: float) -> None:
        await asyncio.sleep(0)

    given = MCPServerSettings.model_validate({"url": url, "timeout": 20.0, **settings})
    connection = Connection("docs", given, around_it or around(home), sleep=sleep or at_once)
    try:
        yield connection
    finally:
        await connection.close()
