"""Calls of MCP servers of the network that fail: one alone, or with its connection; in bounded time, and none is repeated."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from handwork.errors import MCPLoginNeeded, MCPRefused, MCPUnavailable
from handwork.mcp import http, wire
from handwork.mcp.amount import MOST_VALUES
from handwork.mcp.content import Text
from tests.mcp.http_servers import Answer, Plain, around, connected, plain_server, says
from tests.mcp.place import Clock

JSON = {"Content-Type": "application/json"}
STREAM = {"Content-Type": "text/event-stream"}


@pytest.fixture
async def plain() -> AsyncIterator[Plain]:
    async with plain_server() as server:
        yield server


# ---- one call fails, the connection stands


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (says(500, "boom"), "500 Internal Server Error: boom"),
        (says(429, headers={"Retry-After": "9"}), "try again in 9 s"),
        (says(403), "403 Forbidden"),
        (says(200, "<html></html>", {"Content-Type": "text/html"}), "a web page"),
        (says(200, gzip.compress(b"{}"), {**JSON, "Content-Encoding": "gzip"}), "compressed content (gzip)"),
        (says(302, headers={"Location": "https://elsewhere.example/"}), "redirects to https://elsewhere.example/"),
        (says(200, b"no json", JSON), "What the MCP server docs answered is no message of the protocol"),
        (says(200, b"[" * 100_000, JSON), "is no message of the protocol"),
        (says(200, b"data: {}\n\n", STREAM), "is no message of the protocol"),
    ],
)
async def test_a_call_that_fails_costs_only_itself(plain: Plain, tmp_path: Path, answer: Answer, words: str) -> None:
    async with connected(plain.url, tmp_path) as connection:
        await connection.ready()
        plain.answers["tools/call"] = answer
        with pytest.raises(MCPRefused) as caught:
            await connection.call("echo", {"text": "hi"})
        assert words in str(caught.value)
        del plain.answers["tools/call"]
        assert (await connection.call("echo", {"text": "again"})).parts == (Text("again"),)
    assert plain.asked("initialize") == 1
    assert plain.asked("tools/call") == 2


async def test_an_error_in_the_words_of_the_protocol_is_the_servers_own(plain: Plain, tmp_path: Path) -> None:
    async def answer(request: web.Request, message: dict[str, Any]) -> web.Response:
        error = {"code": -32602, "message": "no such tool"}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error}, status=400)

    plain.answers["tools/call"] = answer
    async with connected(plain.url, tmp_path) as connection:
        with pytest.raises(MCPRefused) as caught:
            await connection.call("echo", {})
    assert (caught.value.code, str(caught.value)) == (-32602, "no such tool")


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_huge_answer_is_not_held(
    plain: Plain, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "LARGEST", 1 << 20)
    monkeypatch.setattr(http, "LARGEST", 1 << 20)
    sent = 0

    async def flood(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        await response.write(b"data: ")
        while sent < 1 << 30:
            await response.write(b"x" * (1 << 16))
            sent += 1 << 16
        return response

    async with connected(plain.url, tmp_path) as connection:
        await connection.ready()
        plain.answers["tools/call"] = flood
        with pytest.raises(MCPRefused, match="1 MB|1048576"):
            await connection.call("echo", {})
        assert sent < 1 << 25
        del plain.answers["tools/call"]
        assert (await connection.call("echo", {"text": "again"})).parts == (Text("again"),)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_of_more_values_than_any_may_have_is_not_read(plain: Plain, tmp_path: Path, kind: str) -> None:
    async def bomb(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        answer = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"x":[%s0]}}' % (message["id"], b"0," * MOST_VALUES)
        body = answer if kind == "application/json" else b': "\n\ndata: %s\n\n' % answer
        return web.Response(body=body, content_type=kind)

    async with connected(plain.url, tmp_path) as connection:
        await connection.ready()
        plain.answers["tools/call"] = bomb
        with pytest.raises(MCPRefused, match="500,000 values"):
            await connection.call("echo", {})
        del plain.answers["tools/call"]
        assert (await connection.call("echo", {"text": "again"})).parts == (Text("again"),)


async def test_a_call_that_takes_too_long_ends_and_others_go_on(plain: Plain, tmp_path: Path) -> None:
    begun, clock = asyncio.Event(), Clock()

    async def slow(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        if message["params"]["arguments"]["text"] != "slow":
            return plain.usual(request, message)
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    plain.answers["tools/call"] = slow
    async with connected(plain.url, tmp_path, around_it=around(tmp_path, clock=clock)) as connection:
        await connection.ready()
        late = asyncio.create_task(connection.call("echo", {"text": "slow"}))
        await begun.wait()
        assert (await connection.call("echo", {"text": "quick"})).parts == (Text("quick"),)
        clock.pass_(connection.settings.timeout)
        with pytest.raises(MCPRefused, match="did not answer within 20 s"):
            await late
        assert (await connection.call("echo", {"text": "on"})).parts == (Text("on"),)


# ---- the connection is lost


async def cut(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """Begin an answer and tear the connection down."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"jsonrpc":')
    assert request.transport is not None
    request.transport.abort()
    return response


async def cut_stream(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """Begin a stream and tear the connection down."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(b": here\n\n")
    assert request.transport is not None
    request.transport.abort()
    return response


async def cut_before(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """Tear the connection down before anything is said."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def end_of_stream(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
    """A stream that ends in order, and without the answer."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    return response


@pytest.mark.parametrize("answer", [cut, cut_stream, cut_before, end_of_stream])
async def test_an_answer_that_breaks_off_is_lost_and_never_asked_for_again(
    plain: Plain, tmp_path: Path, answer: Answer
) -> None:
    async with connected(plain.url, tmp_path) as connection:
        await connection.ready()
        plain.answers["tools/call"] = answer
        with pytest.raises(MCPUnavailable, match="was lost"):
            await connection.call("echo", {"text": "once"})
        assert plain.asked("tools/call") == 1
        del plain.answers["tools/call"]
        assert (await connection.call("echo", {"text": "again"})).parts == (Text("again"),)
    assert plain.asked("initialize") == 2


async def test_a_session_that_has_ended_is_begun_anew(plain: Plain, tmp_path: Path) -> None:
    async with connected(plain.url, tmp_path) as connection:
        await connection.ready()
        plain.session = "session-2"
        with pytest.raises(MCPUnavailable, match="has ended the session"):
            await connection.call("echo", {"text": "once"})
        assert (await connection.call("echo", {"text": "again"})).parts == (Text("again"),)
    assert plain.asked("initialize") == 2


async def test_a_login_that_is_wanted_later_is_told(plain: Plain, tmp_path: Path) -> None:
    async with connected(plain.url, tmp_path) as connection:
        await connection.ready()
        plain.answers["*"] = says(401)
        with pytest.raises(MCPLoginNeeded, match=r"wants you to log in – handwork mcp login docs$"):
            await connection.call("echo", {"text": "once"})
        with pytest.raises(MCPLoginNeeded):
            await connection.ready()


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_an_attempt_asks_a_failing_server_once_in_each_era(plain: Plain, tmp_path: Path, status: int) -> None:
    plain.answers["*"] = says(status)
    paused = asyncio.Event()

    async def pause(seconds: float) -> None:
        paused.set()
        await asyncio.Event().wait()

    async with connected(plain.url, tmp_path, sleep=pause) as connection:
        with pytest.raises(MCPUnavailable):
            await connection.ready()
        await paused.wait()
        assert [method for _, method, _ in plain.seen] == ["server/discover", "initialize"]


# ---- the stream of a server's own words


async def test_the_stream_of_news_is_opened_again_when_it_ends(plain: Plain, tmp_path: Path) -> None:
    opened, second = 0, asyncio.Event()

    async def news(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        nonlocal opened
        opened += 1
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        await response.write(f"retry: 1\ndata: {json.dumps(changed)}\n\n".encode())
        if opened > 1:
            second.set()
            await asyncio.Event().wait()
        return response

    plain.answers["GET"] = news
    async with connected(plain.url, tmp_path) as connection:
        await connection.ready()
        await asyncio.wait_for(second.wait(), 10)
        await connection.call("echo", {"text": "hi"})
        assert connection.stale


async def test_a_farewell_that_is_never_answered_does_not_hold_up_the_end(
    plain: Plain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "_FAREWELL", 0.1)

    async def never(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    plain.answers["DELETE"] = never
    async with asyncio.timeout(5), connected(plain.url, tmp_path) as connection:
        await connection.ready()
    assert plain.asked("DELETE") == 1


_PROGRAM = """
import asyncio, contextlib, sys
from pathlib import Path
from handwork.errors import MCPServerError
from tests.mcp.http_servers import connected

async def main():
    async with connected(sys.argv[1], Path(sys.argv[2])) as connection:
        with contextlib.suppress(MCPServerError):
            await connection.call("echo", {})

asyncio.run(main())
"""


async def test_nothing_of_the_librarys_log_comes_to_the_terminal(plain: Plain, tmp_path: Path) -> None:
    plain.answers["tools/call"] = says(200, b"no json", JSON)
    pipe = asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _PROGRAM, plain.url, str(tmp_path)),
        cwd=Path(__file__).parents[2],
        stdout=pipe,
        stderr=pipe,
    )
    assert await program.communicate() == (b"", b"")
    assert plain.asked("tools/call") == 1


@pytest.mark.parametrize("status", [400, 401, 404, 500])
async def test_a_server_without_a_stream_of_news_is_as_good(plain: Plain, tmp_path: Path, status: int) -> None:
    plain.answers["GET"] = says(status)
    async with connected(plain.url, tmp_path) as connection:
        for each in range(3):
            assert (await connection.call("echo", {"text": str(each)})).parts == (Text(str(each)),)
    assert plain.asked("initialize") == 1
    assert plain.asked("GET") >= 1


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(plain: Plain, tmp_path: Path) -> None:
    cancelled = asyncio.Event()

    async def heard(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        cancelled.set()
        return web.Response(status=202)

    async def never(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    plain.answers |= {"tools/call": never, "notifications/cancelled": heard}
    async with connected(plain.url, tmp_path) as connection:
        await connection.ready()
        call = asyncio.create_task(connection.call("echo", {"text": "x"}))
        await plain.called.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(cancelled.wait(), 10)
        del plain.answers["tools/call"]
        assert (await connection.call("echo", {"text": "on"})).parts == (Text("on"),)
