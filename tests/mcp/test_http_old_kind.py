"""MCP servers of the old kind (SSE): where our messages go, what they answer there, and how their stream ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from aiohttp import web

from handwork.errors import MCPLoginNeeded, MCPRefused, MCPUnavailable
from handwork.mcp import sse
from handwork.mcp.connection import Connection
from handwork.mcp.content import Text
from tests.mcp.http_servers import Plain, connected, serving


class Old:
    """A server of the old kind: `endpoint` is where it says that messages go, `answer` what it answers there."""

    def __init__(self) -> None:
        self.origin = ""
        self.endpoint = "/messages?id=1"
        self.status = 202
        self.opening = 200
        self.plain = Plain()
        self.streams: list[web.StreamResponse] = []
        self.messages = 0
        self.posted = 0
        self.is_new = False
        self.framed: Callable[[bytes], bytes] = lambda body: body
        self.ended = asyncio.Event()

    async def stream(self, request: web.Request) -> web.StreamResponse:
        if self.opening != 200 or self.is_new:
            return web.Response(status=405 if self.is_new else self.opening)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if self.endpoint:
            await response.write(f": hello\n\nevent: endpoint\ndata: {self.endpoint}\n\n".encode())
        self.streams.append(response)
        await self.ended.wait()
        self.ended.clear()
        return response

    async def no_message(self, request: web.Request) -> web.StreamResponse:
        self.posted += 1
        if self.is_new:
            return self.plain.usual(request, await request.json())
        return web.Response(status=405)

    async def message(self, request: web.Request) -> web.Response:
        self.messages += 1
        message = await request.json()
        if message.get("method") == "tools/call" and self.status != 202:
            return web.Response(status=self.status, text="no")
        answer = self.plain.usual(request, message)
        if isinstance(answer, web.Response) and isinstance(answer.body, bytes) and answer.body:
            await self.streams[-1].write(b"event: message\ndata: " + self.framed(answer.body) + b"\n\n")
        return web.Response(status=200, text="Accepted")


@pytest.fixture
async def old() -> AsyncIterator[Old]:
    server = Old()
    app = web.Application()
    app.router.add_get("/sse", server.stream)
    app.router.add_post("/sse", server.no_message)
    app.router.add_post("/messages", server.message)
    async with serving(app) as origin:
        server.origin = origin
        yield server


async def test_messages_go_where_the_server_says(old: Old, tmp_path: Path) -> None:
    async with connected(f"{old.origin}/sse", tmp_path) as connection:
        assert connection.settings.type == "sse"
        assert (await connection.call("echo", {"text": "old"})).parts == (Text("old"),)
    assert len(old.streams) == 1


@pytest.mark.parametrize(
    "endpoint", ["https://evil.example/messages", "//evil.example/x", "http://127.0.0.1:1/x", "http://[", "file:///x"]
)
async def test_messages_do_not_go_to_another_origin(old: Old, tmp_path: Path, endpoint: str) -> None:
    old.endpoint = endpoint
    async with connected(f"{old.origin}/sse", tmp_path, headers={"X-Api-Key": "mine"}) as connection:
        with pytest.raises(MCPUnavailable) as caught:
            await connection.ready()
    assert any(words in caught.value.what for words in ("which was not followed", "did not say where messages go"))
    assert old.messages == 0


async def test_a_server_that_never_says_where_messages_go_is_given_up(
    old: Old, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "_PATIENCE", 0.2)
    old.endpoint = ""
    async with connected(f"{old.origin}/sse", tmp_path) as connection:
        with pytest.raises(MCPUnavailable, match=r"did not begin within 0\.2 s"):
            await connection.ready()


@pytest.mark.parametrize(("status", "words"), [(404, "404 Not Found"), (500, "500"), (403, "403"), (405, "405")])
async def test_a_stream_that_is_refused_is_told(old: Old, tmp_path: Path, status: int, words: str) -> None:
    old.opening = status
    async with connected(f"{old.origin}/sse", tmp_path) as connection:
        with pytest.raises(MCPUnavailable, match=words):
            await connection.ready()


async def test_a_stream_that_wants_a_login_names_the_command(old: Old, tmp_path: Path) -> None:
    old.opening = 401
    async with connected(f"{old.origin}/sse", tmp_path) as connection:
        with pytest.raises(MCPLoginNeeded):
            await connection.ready()


async def test_a_call_that_is_refused_fails_at_once_and_alone(old: Old, tmp_path: Path) -> None:
    async with connected(f"{old.origin}/sse", tmp_path) as connection:
        await connection.ready()
        old.status = 500
        with pytest.raises(Exception, match="500 Internal Server Error"):
            await connection.call("echo", {"text": "x"})
        old.status = 202
        assert (await connection.call("echo", {"text": "again"})).parts == (Text("again"),)
    assert len(old.streams) == 1


@pytest.mark.parametrize(
    ("framed", "answer"),
    [
        (lambda body: b"[" + body + b"]", "text"),
        (lambda body: body.replace(b'"text": "text"', b'"text": "te\\ud800xt"'), "te\ufffdxt"),
        (lambda body: b" " + body.replace(b'"text": "text"', b'"text": "te\xffxt"'), "te\ufffdxt"),
    ],
)
async def test_odd_messages_on_the_stream_are_read_as_those_of_a_program(
    old: Old, tmp_path: Path, framed: Callable[[bytes], bytes], answer: str
) -> None:
    async with connected(f"{old.origin}/sse", tmp_path) as connection:
        await connection.ready()
        old.framed = framed
        assert (await connection.call("echo", {"text": "text"})).parts == (Text(answer),)


async def test_an_answer_on_the_stream_that_nobody_can_read_is_an_error_at_once(old: Old, tmp_path: Path) -> None:
    async with connected(f"{old.origin}/sse", tmp_path) as connection:
        await connection.ready()
        old.framed = lambda body: body.replace(b'"text": "text"', b'"text": ' + b"[" * 3000 + b"]" * 3000)
        with pytest.raises(MCPRefused, match="nested too deeply"):
            await connection.call("echo", {"text": "text"})


async def test_a_stream_that_ends_is_a_lost_connection_and_is_opened_again(old: Old, tmp_path: Path) -> None:
    async with connected(f"{old.origin}/sse", tmp_path) as connection:
        await connection.ready()
        old.status = 404
        old.ended.set()
        with pytest.raises(MCPUnavailable, match="was lost|ended the session"):
            await connection.call("echo", {"text": "x"})
        old.status = 202
        assert (await connection.call("echo", {"text": "again"})).parts == (Text("again"),)
    assert len(old.streams) == 2


async def lose(old: Old, connection: Connection) -> None:
    old.status = 404
    old.ended.set()
    with pytest.raises(MCPUnavailable, match="was lost|ended the session"):
        await connection.call("echo", {"text": "x"})
    old.status = 202


async def test_what_kind_a_server_turned_out_to_be_is_known_when_it_is_connected_again(
    old: Old, tmp_path: Path
) -> None:
    async with connected(f"{old.origin}/sse", tmp_path, type="http") as connection:
        await connection.ready()
        posted = old.posted
        assert posted > 0
        await lose(old, connection)
        assert (await connection.call("echo", {"text": "again"})).parts == (Text("again"),)
        assert (old.posted, len(old.streams)) == (posted, 2)


async def test_a_server_that_has_become_one_of_the_new_kind_is_met_as_such(old: Old, tmp_path: Path) -> None:
    async with connected(f"{old.origin}/sse", tmp_path, type="http") as connection:
        await connection.ready()
        old.is_new = True
        await lose(old, connection)
        assert (await connection.call("echo", {"text": "again"})).parts == (Text("again"),)
        assert len(old.streams) == 1
