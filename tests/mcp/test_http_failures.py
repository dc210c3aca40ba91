"""MCP servers of the network that fail or misbehave: each gets its words, in bounded time, and nothing is repeated."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from handwork.errors import MCPLoginNeeded, MCPUnavailable
from handwork.mcp.content import Text
from handwork.mcp.http import Http
from tests.mcp.http_servers import Plain, around, connected, plain_server, says
from tests.mcp.place import Clock

JSON = {"Content-Type": "application/json"}
STREAM = {"Content-Type": "text/event-stream"}


@pytest.fixture
async def plain() -> AsyncIterator[Plain]:
    async with plain_server() as server:
        yield server


async def failure_of(url: str, home: Path, **settings: Any) -> MCPUnavailable:
    async with connected(url, home, **settings) as connection:
        with pytest.raises(MCPUnavailable) as caught:
            await connection.ready()
    return caught.value


# ---- no connection comes about


@pytest.mark.parametrize(
    ("status", "headers", "says_so", "hint", "lasting"),
    [
        (403, {}, "403 Forbidden: go away", "may not do this", True),
        (404, {}, "404 Not Found: go away", "/mcp, those of type sse at /sse", True),
        (405, {}, "405 Method Not Allowed", 'set its type to "sse"', True),
        (418, {}, "418", "check its url, type and headers", True),
        (429, {"Retry-After": "7"}, "429 Too Many Requests", "try again in 7 s", False),
        (500, {}, "500 Internal Server Error: go away", "try again later", False),
        (503, {"Retry-After": "3"}, "503 Service Unavailable", "try again in 3 s", False),
        (503, {"Retry-After": "absurd"}, "503 Service Unavailable", "try again later", False),
    ],
)
async def test_a_status_that_says_no_is_told_with_the_way_on(
    plain: Plain, tmp_path: Path, status: int, headers: dict[str, str], says_so: str, hint: str, lasting: bool
) -> None:
    plain.answers["*"] = says(status, "go away", headers)
    error = await failure_of(plain.url, tmp_path)
    assert f"The MCP server docs at {plain.url} answered" in error.what
    assert says_so in error.what
    assert hint in error.hint
    assert error.lasting is lasting


async def test_a_server_that_wants_a_login_names_the_command(plain: Plain, tmp_path: Path) -> None:
    plain.answers["*"] = says(401, headers={"WWW-Authenticate": "Bearer"})
    error = await failure_of(plain.url, tmp_path)
    assert isinstance(error, MCPLoginNeeded)
    assert error.hint == "handwork mcp login docs"
    assert len(plain.seen) == 1  # nothing is tried again


async def test_credentials_that_are_not_taken_are_no_missing_login(plain: Plain, tmp_path: Path) -> None:
    plain.answers["*"] = says(401)
    error = await failure_of(plain.url, tmp_path, headers={"Authorization": "Bearer wrong-token"})
    assert "does not take the credentials that are configured" in error.what
    assert "wrong-token" not in str(error)


async def test_a_web_page_is_no_server(plain: Plain, tmp_path: Path) -> None:
    plain.answers["*"] = says(200, "<html>Welcome</html>", {"Content-Type": "text/html; charset=utf-8"})
    error = await failure_of(plain.url, tmp_path)
    assert "answered with a web page" in error.what
    assert "/mcp" in error.hint


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_elsewhere_is_not_followed_and_says_where_to(
    plain: Plain, tmp_path: Path, status: int
) -> None:
    async with plain_server() as other:
        plain.answers["*"] = says(status, headers={"Location": f"{other.origin}/mcp?key=s3cret"})
        error = await failure_of(plain.url, tmp_path, headers={"X-Api-Key": "mine"})
        assert f"redirects to {other.origin}/mcp, which was not followed" in error.what
        assert "s3cret" not in str(error)
        assert other.seen == []


async def test_a_redirect_on_the_same_server_is_followed(plain: Plain, tmp_path: Path) -> None:
    async def answer(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        if request.path == "/mcp":
            return web.Response(status=307, headers={"Location": "/mcp/"})
        return plain.usual(request, message)

    plain.answers["*"] = answer
    async with connected(plain.url, tmp_path) as connection:
        assert (await connection.call("echo", {"text": "hi"})).parts == (Text("hi"),)


async def test_nobody_listening_is_told_in_words(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    error = await failure_of(f"http://127.0.0.1:{port}/mcp", tmp_path)
    assert error.what == f"The MCP server docs at http://127.0.0.1:{port}/mcp cannot be reached: connection refused"
    assert not error.lasting


async def test_no_encryption_where_it_was_expected_is_told(plain: Plain, tmp_path: Path) -> None:
    error = await failure_of(plain.url.replace("http://", "https://"), tmp_path)
    assert "no encrypted connection" in error.what


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1/mcp", "file:///etc/passwd", "http://", "http://127.0.0.1:0/", "http://a b/", "nothing"]
)
async def test_what_is_no_address_is_refused_before_anything_is_sent(url: str, tmp_path: Path) -> None:
    error = await failure_of(url, tmp_path, type="http")
    assert "has no address that can be asked" in error.what
    assert error.lasting


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://mcp.example/mcp", {"Authorization": "Bearer abc"}),
        ("http://mcp.example/mcp", {"X-Api-Key": "abc"}),
        ("http://user:abc@mcp.example/mcp", {}),
        ("http://10.0.0.7/mcp", {"Authorization": "Bearer abc"}),
    ],
)
async def test_credentials_are_not_sent_unencrypted(url: str, headers: dict[str, str], tmp_path: Path) -> None:
    error = await failure_of(url, tmp_path, headers=headers)
    assert "unencrypted, so nothing was sent" in error.what
    assert "https://" in error.hint
    assert "abc" not in str(error)


@pytest.mark.parametrize("header", ["Host", "mcp-session-id", "Content-Length", "Accept-Encoding"])
async def test_headers_of_the_protocol_cannot_be_set(plain: Plain, tmp_path: Path, header: str) -> None:
    error = await failure_of(plain.url, tmp_path, headers={header: "x"})
    assert "belongs to the protocol" in error.what
    assert plain.seen == []


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\x00", "é"])
async def test_a_header_is_one_line_of_ascii(plain: Plain, tmp_path: Path, value: str) -> None:
    error = await failure_of(plain.url, tmp_path, headers={"X-Name": value})
    assert "cannot be sent" in error.what
    assert plain.seen == []


async def test_what_a_server_says_is_cleaned_and_short(plain: Plain, tmp_path: Path) -> None:
    plain.answers["*"] = says(500, "\x1b[31mred\x07 " + "x" * 5000)
    error = await failure_of(plain.url, tmp_path)
    assert "\x1b" not in error.what
    assert len(error.what) < 400


def retry_after(said: str | int) -> dict[str, str]:
    """The header, as text or as a date in so many seconds."""
    if isinstance(said, int):
        said = format_datetime(datetime.fromtimestamp(time.time() + said, UTC), usegmt=True)
    return {"Retry-After": said}


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        ("7", 7, 7),
        ("0", 0.5, 0.5),
        ("3600", 3600, 3600),
        (500, 300, 500),
        (-500, 0.5, 0.5),
        ("absurd", 0.5, 0.5),
        ("-7", 0.5, 0.5),
        ("Thu, 99 Foo 2026 00:00:00 GMT", 0.5, 0.5),
    ],
)
async def test_a_server_is_not_asked_before_the_time_that_it_says(
    plain: Plain, tmp_path: Path, said: str | int, least: float, most: float
) -> None:
    slept, woken = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        slept.set_result(seconds)
        await woken.wait()

    plain.answers["*"] = says(503, "later", retry_after(said))
    async with connected(plain.url, tmp_path, sleep=sleep) as connection:
        with pytest.raises(MCPUnavailable) as caught:
            await connection.ready()
        assert least <= await slept <= most
        if most > connection.settings.timeout:  # nobody waits for it in vain
            with pytest.raises(MCPUnavailable, match="503 Service Unavailable") as again:
                await connection.call("echo", {"text": "x"})
            assert again.value.retry_after == caught.value.retry_after
        del plain.answers["*"]
        woken.set()
        await asyncio.sleep(0)  # the next attempt has begun
        assert (await connection.call("echo", {"text": "x"})).parts == (Text("x"),)


@pytest.mark.parametrize("said", ["86400", "9" * 400, 86400])
async def test_a_server_that_wants_to_be_left_alone_for_more_than_an_hour_is_given_up(
    plain: Plain, tmp_path: Path, said: str | int
) -> None:
    plain.answers["*"] = says(429, "later", retry_after(said))
    async with connected(plain.url, tmp_path) as connection:
        with pytest.raises(MCPUnavailable, match="try again in"):
            await connection.ready()
        assert connection.state == "gone"


@pytest.mark.slow
async def test_a_server_that_is_silent_at_the_newer_protocols_question_is_connected_in_half_its_time(
    plain: Plain, tmp_path: Path
) -> None:
    async def never(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    clock = Clock()
    plain.answers["server/discover"] = never
    async with connected(plain.url, tmp_path, around_it=around(tmp_path, clock=clock), timeout=4) as connection:
        ready = asyncio.create_task(connection.ready())
        await clock.run_out(2)
        with clock.stopped():
            assert (await ready).protocol == "2025-06-18"
            assert (await connection.call("echo", {"text": "on"})).parts == (Text("on"),)


@pytest.mark.parametrize("where", ["*", "initialize", "tools/list"])
async def test_silence_ends_with_the_time_limit(plain: Plain, tmp_path: Path, where: str) -> None:
    async def never(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    plain.answers[where] = never
    async with connected(plain.url, tmp_path, timeout=0.3) as connection:
        with pytest.raises(MCPUnavailable, match=r"within 0\.3 s"):
            await connection.ready()


async def test_whatever_goes_wrong_while_messages_are_carried_ends_the_wait_of_all_that_asked(
    plain: Plain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(way: Http, item: Any) -> bool:
        raise KeyError("what nobody thought of")

    async with connected(plain.url, tmp_path) as connection:
        await connection.ready()
        monkeypatch.setattr(Http, "_broke_off", fails)
        async with asyncio.timeout(10):
            with pytest.raises(MCPUnavailable, match="docs was lost: 'what nobody thought of'"):
                await connection.call("echo", {"text": "x"})
        monkeypatch.undo()
