"""Logging in at MCP servers: the whole way over real connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import pytest
from aiohttp import web

from handwork.config import MCPServerSettings
from handwork.errors import MCPLoginNeeded, MCPUnavailable
from handwork.mcp.content import Text
from handwork.mcp.login import log_out
from tests.mcp.http_servers import connected, plain_server, serving
from tests.mcp.login_server import Guarded, Visitor, guarded, logged_in


@pytest.fixture
async def server() -> AsyncIterator[Guarded]:
    async with guarded() as one:
        yield one


async def refusal(server: Guarded, home: Path, visitor: Visitor | None = None, **more: Any) -> MCPUnavailable:
    with pytest.raises(MCPUnavailable) as caught:
        await logged_in(server, home, visitor, **more)
    return caught.value


# ---- it works


async def test_after_a_login_the_server_answers_and_the_tokens_are_private(server: Guarded, tmp_path: Path) -> None:
    visitor = Visitor()
    async with connected(server.url, tmp_path) as before:
        with pytest.raises(MCPLoginNeeded) as needed:
            await before.ready()
    assert needed.value.hint == "handwork mcp login docs"
    assert _names(tmp_path) == []
    where = await logged_in(server, tmp_path, visitor)
    async with connected(server.url, tmp_path) as connection:
        assert (await connection.call("echo", {"text": "in"})).parts == (Text("in"),)
    assert "You can close this page" in visitor.pages[0]
    assert [_mode(Path(where or "")), _mode(Path(where or "").parent)] == [0o600, 0o700]


async def test_what_is_asked_for_is_what_the_standards_say(server: Guarded, tmp_path: Path) -> None:
    visitor = Visitor()
    server.about["scopes_supported"] = ["read", "write"]
    await logged_in(server, tmp_path, visitor)
    asked = dict(parse_qsl(urlsplit(visitor.sent[0]).query))
    exchange = server.authority.asked("/token")[0]
    client = server.authority.clients["client-1"]
    assert (asked["response_type"], asked["code_challenge_method"], asked["scope"]) == ("code", "S256", "read write")
    assert asked["resource"] == exchange["resource"] == server.url
    assert client["redirect_uris"] == [asked["redirect_uri"]] == [exchange["redirect_uri"]]
    assert urlsplit(asked["redirect_uri"]).hostname == "127.0.0.1"
    assert len(exchange["code_verifier"]) >= 43
    assert exchange["client_id"] == "client-1"


async def test_a_challenge_names_the_scope_and_an_option_comes_before_it(server: Guarded, tmp_path: Path) -> None:
    server.about["scopes_supported"] = ["everything"]
    server.challenge = 'Bearer scope="files:read"'
    for scope, expected in (("", "files:read"), ("mine", "mine")):
        visitor = Visitor()
        await logged_in(server, tmp_path, visitor, scope=scope)
        assert dict(parse_qsl(urlsplit(visitor.sent[0]).query))["scope"] == expected


async def test_a_client_registered_by_hand_is_used_with_its_port_and_its_secret(
    server: Guarded, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    oauth = {"client_id": "mine", "client_secret": "env:SECRET", "redirect_port": port}
    visitor = Visitor()
    await logged_in(server, tmp_path, visitor, settings={"oauth": oauth}, environ={"SECRET": "s3cret"})
    assert server.authority.clients == {}
    assert server.authority.asked("/token")[0]["client_secret"] == "s3cret"
    asked = dict(parse_qsl(urlsplit(visitor.sent[0]).query))
    assert asked["redirect_uri"] == f"http://127.0.0.1:{port}/callback"


async def test_a_port_that_is_taken_is_told(server: Guarded, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = await refusal(server, tmp_path, settings={"oauth": {"redirect_port": taken.getsockname()[1]}})
    assert "needs the port" in error.what
    assert "redirect_port" in error.hint


async def test_an_address_that_was_pasted_completes_the_login(server: Guarded, tmp_path: Path) -> None:
    visitor, lines = Visitor(), asyncio.Queue[str]()
    visitor.goes = False
    login = asyncio.create_task(logged_in(server, tmp_path, visitor, paste=lines.get))
    while not visitor.sent:
        await asyncio.wait([login], timeout=0.01)
    await lines.put("http://127.0.0.1/callback?code=x&state=guessed")
    async with aiohttp.ClientSession() as browser, browser.get(visitor.sent[0], allow_redirects=False) as page:
        await lines.put(f"  {page.headers['Location']} ")
    assert await login
    assert visitor.wrong == 1


async def test_a_server_of_early_2025_is_its_own_authority(server: Guarded, tmp_path: Path) -> None:
    plain = server.plain

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.path == "/mcp":
            return web.Response(status=401)
        return await server.authority.handle(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with serving(app) as origin:
        server.authority.origin, plain.origin, server.url = origin, origin, f"{origin}/mcp"
        assert await logged_in(server, tmp_path)


async def test_a_server_that_wants_no_login_says_so(tmp_path: Path) -> None:
    async with plain_server() as plain:
        server = Guarded.__new__(Guarded)
        server.url = plain.url
        assert await logged_in(server, tmp_path) is None


async def test_a_server_that_greets_anybody_and_wants_a_login_for_its_tools_gets_one(
    server: Guarded, tmp_path: Path
) -> None:
    server.greets = True
    assert await logged_in(server, tmp_path)
    async with connected(server.url, tmp_path) as connection:
        assert (await connection.call("echo", {"text": "in"})).parts == (Text("in"),)


async def test_logging_out_takes_the_tokens_back_and_forgets_them(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    settings = MCPServerSettings.model_validate({"url": server.url})
    assert await log_out("docs", settings, home=tmp_path, environ={}) == (True, "")
    assert (server.authority.access, server.authority.refresh) == ({}, {})
    assert await log_out("docs", settings, home=tmp_path, environ={}) == (False, "")
    assert not [text for text in _kept(tmp_path) if "access-" in text or "refresh-" in text]


async def test_logging_out_forgets_even_where_nothing_can_be_taken_back(server: Guarded, tmp_path: Path) -> None:
    server.authority.changes["revocation_endpoint"] = None
    await logged_in(server, tmp_path)
    settings = MCPServerSettings.model_validate({"url": server.url})
    there, still = await log_out("docs", settings, home=tmp_path, environ={})
    assert there
    assert "they end by themselves" in still
    assert not [text for text in _kept(tmp_path) if "access-" in text]


def _kept(home: Path) -> list[str]:
    return [file.read_text() for file in home.rglob("*") if file.is_file() and file.name != "lock"]


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _names(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]
