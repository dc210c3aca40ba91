"""Answers to a login that must not be believed: another state, another issuer, addresses that lead astray, tokens that are none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import pytest
from aiohttp import web

from handwork.errors import MCPUnavailable
from handwork.mcp.content import Text
from tests.mcp.http_servers import connected
from tests.mcp.login_server import Guarded, Visitor, guarded, logged_in


@pytest.fixture
async def server() -> AsyncIterator[Guarded]:
    async with guarded() as one:
        yield one


async def refusal(server: Guarded, home: Path, visitor: Visitor | None = None, **more: Any) -> MCPUnavailable:
    with pytest.raises(MCPUnavailable) as caught:
        await logged_in(server, home, visitor, **more)
    return caught.value


# ---- answers that are not believed


@pytest.mark.parametrize(
    ("back", "words"),
    [
        ({"iss": "https://evil.example"}, "not from where you were sent"),
        ({"iss": None}, "it does not say from where"),
        ({"code": None, "error": "access_denied", "error_description": "no\x1b[31m"}, "access_denied: no"),
        ({"code": ""}, "there was no code"),
    ],
)
async def test_an_answer_of_another_or_a_refusal_brings_no_token(
    server: Guarded, tmp_path: Path, back: dict[str, str | None], words: str
) -> None:
    server.authority.back = back
    error = await refusal(server, tmp_path)
    assert words in error.what
    assert "\x1b" not in error.what
    assert server.authority.asked("/token") == []


@pytest.mark.parametrize("back", [{"state": "guessed"}, {"state": None}, {"state": ""}])
async def test_an_answer_with_another_state_is_not_used_and_the_login_waits_on(
    server: Guarded, tmp_path: Path, back: dict[str, str | None]
) -> None:
    server.authority.back = back
    visitor = Visitor()
    error = await refusal(server, tmp_path, visitor, patience=0.5)
    assert "was not completed within 0.5 s" in error.what
    assert "it was not used" in visitor.pages[0]
    assert server.authority.asked("/token") == []


@pytest.mark.parametrize(
    "name", ["authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"]
)
@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "ftp://evil.example/",
        "https://user:pw@evil.example/",
        "https://evil.example/#x",
        "https://evil.example/a b",
        "https://evil.example/\x1b[31m",
        "--help",
        "https://",
    ],
)
async def test_addresses_that_a_server_names_are_looked_at_before_they_are_asked(
    server: Guarded, tmp_path: Path, name: str, url: str
) -> None:
    server.authority.changes[name] = url
    visitor = Visitor()
    error = await refusal(server, tmp_path, visitor)
    assert "so it was not asked" in error.what
    assert "\x1b" not in str(error)
    assert visitor.sent == []


@pytest.mark.parametrize("issuer", ["http://evil.example", "file:///etc", "nothing"])
async def test_a_place_to_log_in_must_be_encrypted(server: Guarded, tmp_path: Path, issuer: str) -> None:
    server.about["authorization_servers"] = [issuer]
    assert "so it was not asked" in (await refusal(server, tmp_path)).what


async def test_a_resource_metadata_elsewhere_is_looked_at_too(server: Guarded, tmp_path: Path) -> None:
    server.challenge = 'Bearer resource_metadata="http://10.0.0.1/latest/meta-data"'
    assert "so it was not asked" in (await refusal(server, tmp_path)).what


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"issuer": "https://evil.example"}, "is of https://evil.example"),
        ({"issuer": None}, "is of nobody"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"code_challenge_methods_supported": None}, "PKCE"),
        ({"token_endpoint": None}, "names no token_endpoint"),
        ({"response_types_supported": ["token"]}, "does not give codes"),
        ({"registration_endpoint": None}, "registered there by hand"),
    ],
)
async def test_an_authority_that_cannot_be_used_is_told_why(
    server: Guarded, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    server.authority.changes = changes
    visitor = Visitor()
    assert words in (await refusal(server, tmp_path, visitor)).what
    assert visitor.sent == []


@pytest.mark.parametrize("resource", ["https://evil.example/mcp", "ORIGIN/mcp2", "ORIGIN/mcp/below"])
async def test_tokens_for_another_server_are_not_asked_for(server: Guarded, tmp_path: Path, resource: str) -> None:
    server.about["resource"] = resource.replace("ORIGIN", server.plain.origin)
    assert "its logins are for another server" in (await refusal(server, tmp_path)).what


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"error": "invalid_grant", "error_description": "too\\u001b[31m late"}', 400),
        (b'{"access_token": "a b", "token_type": "bearer"}', 200),
        (b'{"access_token": "a\\r\\nX-Evil: 1", "token_type": "bearer"}', 200),
        (b'{"access_token": ["x"], "token_type": "bearer"}', 200),
        (b'{"access_token": "abc", "token_type": "mac"}', 200),
        (b'{"access_token": "abc", "refresh_token": "a\\nb"}', 200),
        (b"<html>", 200),
        (b"[" * 100_000, 200),
        (b"x" * (2 << 20), 200),
        (b"", 302),
    ],
)
async def test_what_is_no_answer_with_tokens_is_refused(
    server: Guarded, tmp_path: Path, body: bytes, status: int
) -> None:
    async def answer(request: web.Request) -> web.Response:
        headers = {"Location": "https://evil.example/"} if status == 302 else {}
        return web.Response(status=status, body=body, content_type="application/json", headers=headers)

    server.authority.instead["/token"] = answer
    error = await refusal(server, tmp_path)
    assert "The login at the MCP server docs was refused" in error.what
    assert "\x1b" not in error.what
    assert _kept(tmp_path) == []


@pytest.mark.parametrize("lifetime", ["3600", "1e999", "x", -5, 10**30, True, None])
async def test_an_absurd_lifetime_is_none(server: Guarded, tmp_path: Path, lifetime: Any) -> None:
    async def answer(request: web.Request) -> web.Response:
        body = server.authority.give(server.url).body
        assert isinstance(body, bytes)
        tokens = json.loads(body)
        return web.json_response(tokens | {"expires_in": lifetime})

    server.authority.instead["/token"] = answer
    await logged_in(server, tmp_path)
    async with connected(server.url, tmp_path) as connection:
        assert (await connection.call("echo", {"text": "in"})).parts == (Text("in"),)


async def test_the_page_is_for_this_machine_and_for_its_own_path(server: Guarded, tmp_path: Path) -> None:
    visitor = Visitor()
    visitor.goes = False
    login = asyncio.create_task(logged_in(server, tmp_path, visitor, patience=10.0))
    while not visitor.sent:
        await asyncio.wait([login], timeout=0.01)
    asked = dict(parse_qsl(urlsplit(visitor.sent[0]).query))
    _, idle = await asyncio.open_connection("127.0.0.1", urlsplit(asked["redirect_uri"]).port)
    good = f"{asked['redirect_uri']}?code=x&state={asked['state']}&iss={server.authority.origin}"
    async with aiohttp.ClientSession() as browser:
        async with browser.get(good, headers={"Host": "evil.example"}) as page:
            assert page.status == 421
        async with browser.get(good.replace("/callback", "/other")) as page:
            assert page.status == 404
        async with browser.post(good) as page:
            assert page.status == 404
        async with browser.get(good + "&state=again") as page:
            assert page.status == 400
        async with browser.get(
            f"{asked['redirect_uri']}?error=<script>&state={asked['state']}&iss={server.authority.origin}"
        ) as page:
            text = await page.text()
            assert "<script>" not in text
            assert page.headers["Cache-Control"] == "no-store"
    async with asyncio.timeout(5):
        with pytest.raises(MCPUnavailable, match="was refused"):
            await login
    idle.close()


async def test_a_login_over_an_unencrypted_connection_is_refused(tmp_path: Path) -> None:
    server = Guarded.__new__(Guarded)
    server.url = "http://mcp.example/mcp"
    assert "unencrypted" in (await refusal(server, tmp_path)).what


async def test_a_login_beside_configured_credentials_would_not_be_used(server: Guarded, tmp_path: Path) -> None:
    error = await refusal(server, tmp_path, settings={"headers": {"Authorization": "Bearer x"}})
    assert "would not be used" in error.what


async def test_a_login_that_is_given_up_leaves_nothing(server: Guarded, tmp_path: Path) -> None:
    visitor = Visitor()
    visitor.goes = False
    login = asyncio.create_task(logged_in(server, tmp_path, visitor))
    while not visitor.sent:
        await asyncio.wait([login], timeout=0.01)
    port = urlsplit(dict(parse_qsl(urlsplit(visitor.sent[0]).query))["redirect_uri"]).port or 0
    login.cancel()
    with pytest.raises(asyncio.CancelledError):
        await login
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    assert _kept(tmp_path) == []


def _kept(home: Path) -> list[str]:
    return [file.read_text() for file in home.rglob("*") if file.is_file() and file.name != "lock"]
