"""MCP servers over HTTP and SSE: both eras, what goes along, what comes back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from handwork.mcp.content import Text
from tests.mcp.http_servers import Plain, around, connected, own_server, plain_server, serving


@pytest.fixture
async def plain() -> AsyncIterator[Plain]:
    async with plain_server() as server:
        yield server


# ---- it works


@pytest.mark.parametrize(("kind", "stateless"), [("http", False), ("http", True), ("sse", False)])
async def test_the_packages_own_server_is_listed_and_called(kind: str, stateless: bool, tmp_path: Path) -> None:
    with own_server(kind, stateless=stateless) as url:
        async with connected(url, tmp_path) as connection:
            offer = await connection.ready()
            answers = await asyncio.gather(*(connection.call("echo", {"text": f"n{each}"}) for each in range(5)))
            large = await connection.call("large", {"size": 3_000_000})
    assert [tool.name for tool in offer.tools] == ["echo", "large", "wait"]
    assert offer.protocol >= "2026"
    assert [answer.parts for answer in answers] == [(Text(f"n{each}"),) for each in range(5)]
    assert isinstance(large.parts[0], Text)
    assert len(large.parts[0].text) == 3_000_000


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_call_that_is_given_up_ends_at_the_packages_own_server(kind: str, tmp_path: Path) -> None:
    begun, gone = threading.Event(), threading.Event()
    with own_server(kind, begun=begun, gone=gone) as url:
        async with connected(url, tmp_path) as connection:
            await connection.ready()
            call = asyncio.create_task(connection.call("wait", {}))
            assert await asyncio.to_thread(begun.wait, 10)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await asyncio.to_thread(gone.wait, 10)
            assert (await connection.call("echo", {"text": "on"})).parts == (Text("on"),)


async def test_a_server_of_the_handshake_era_works_and_hears_the_end_of_its_session(
    plain: Plain, tmp_path: Path
) -> None:
    async with connected(plain.url, tmp_path) as connection:
        assert (await connection.call("echo", {"text": "hi"})).parts == (Text("hi"),)
    assert plain.asked("DELETE") == 1
    calls = [headers for _, method, headers in plain.seen if method == "tools/call"]
    assert calls[0]["mcp-session-id"] == "session-1"
    assert calls[0]["user-agent"].startswith("handwork/")
    assert calls[0]["accept-encoding"] == "identity"


async def test_headers_go_along_and_may_stand_in_a_variable(plain: Plain, tmp_path: Path) -> None:
    hidden: set[str] = set()
    headers = {"Authorization": "Bearer env:DOCS_TOKEN", "X-Team": "blue"}
    there = around(tmp_path, environ={"DOCS_TOKEN": "s3cret-token"}, hide=hidden.update)
    async with connected(plain.url, tmp_path, around_it=there, headers=headers) as connection:
        await connection.call("echo", {"text": "hi"})
    assert all(seen["authorization"] == "Bearer s3cret-token" for _, _, seen in plain.seen)
    assert all(seen["x-team"] == "blue" for _, _, seen in plain.seen)
    assert "s3cret-token" in hidden


@pytest.mark.parametrize("code", [400, 404, 405])
async def test_a_server_that_knows_sse_only_is_asked_over_sse(code: int, tmp_path: Path) -> None:
    async with old_server(code) as origin, connected(f"{origin}/mcp", tmp_path, type="http") as connection:
        assert (await connection.call("echo", {"text": "old"})).parts == (Text("old"),)


def old_server(code: int) -> Any:
    """A server of the old kind at one address: GET opens the stream, POST to it is answered with `code`."""
    app = web.Application()
    streams: list[web.StreamResponse] = []
    plain = Plain()

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"event: endpoint\ndata: /messages?id=1\n\n")
        streams.append(response)
        await asyncio.Event().wait()
        return response

    async def message(request: web.Request) -> web.Response:
        answer = plain.usual(request, await request.json())
        if isinstance(answer, web.Response) and answer.body:
            assert isinstance(answer.body, bytes)
            await streams[-1].write(b"event: message\ndata: " + answer.body + b"\n\n")
        return web.Response(status=202, text="Accepted")

    async def no(request: web.Request) -> web.Response:
        return web.Response(status=code)

    app.router.add_get("/mcp", stream)
    app.router.add_post("/mcp", no)
    app.router.add_post("/messages", message)
    return serving(app)
