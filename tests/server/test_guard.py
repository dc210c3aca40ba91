"""Who may speak with the server over HTTP: path, Host, Origin, method and token, in that order and in every spelling."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from handwork.server.guard import Guard, is_loopback, names_of

PORT, TOKEN = 4711, "a-token-of-some-length"
HERE = f"127.0.0.1:{PORT}"
Headers = list[tuple[str, str]]


async def status(
    headers: Headers, *, host: str = "127.0.0.1", port: int = PORT, method: str = "POST", path: str = "/mcp"
) -> int:
    """What the guard answers; 200 from behind it."""
    started: list[int] = []

    async def app(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            started.append(message["status"])

    guard = Guard(app, token=TOKEN, names=names_of(host), port=port)
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    await guard({"type": "http", "method": method, "path": path, "headers": raw}, receive, send)
    return started[0]


def allowed(*more: tuple[str, str], host: str = HERE) -> Headers:
    return [("host", host), ("authorization", f"Bearer {TOKEN}"), *more]


@pytest.mark.parametrize("host", [HERE, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
async def test_this_machine_by_its_own_names_is_served(host: str) -> None:
    assert await status(allowed(host=host)) == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:80",
        f"127.0.0.1.evil.example:{PORT}",
        f"evil.example:{PORT}",
        f"localhost.:{PORT}",
        f"localhost.evil.example:{PORT}",
        f"evil.localhost:{PORT}",
        f"127.0.0.1@evil.example:{PORT}",
        f"evil.example@127.0.0.1:{PORT}",
        f"user:{PORT}@127.0.0.1:{PORT}",
        f"127.0.0.1:{PORT}#.evil.example:{PORT}",
        f"127.0.0.1:{PORT}/.evil.example",
        f"127.0.0.1:{PORT}, evil.example",
        f"127.0.0.1:{PORT} ",
        f"127.0.0.1\\.evil.example:{PORT}",
        f"127.1:{PORT}",
        f"2130706433:{PORT}",
        f"0x7f.0.0.1:{PORT}",
        f"[::ffff:127.0.0.1]:{PORT}",
        f"[::1]evil.example:{PORT}",
        f"[::1:{PORT}",
        f"0.0.0.0:{PORT}",
        f"ⅼocalhost:{PORT}".encode().decode("latin-1"),
        "127.0.0.1:",
        f"127.0.0.1:{PORT}:{PORT}",
        "127.0.0.1:99999",
    ],
)
async def test_a_host_that_is_not_ours_is_refused_before_the_token_is_looked_at(host: str) -> None:
    assert await status(allowed(host=host)) == 421
    assert await status([("host", host)]) == 421


async def test_a_request_without_a_host_or_with_two_is_refused() -> None:
    assert await status([("authorization", f"Bearer {TOKEN}")]) == 421
    assert await status(allowed(("host", "evil.example"))) == 421
    assert await status(allowed(("host", HERE))) == 421


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "https://evil.example",
        f"http://evil.example:{PORT}",
        f"https://127.0.0.1:{PORT}",
        "http://127.0.0.1",
        "http://127.0.0.1:80",
        f"http://127.0.0.1.evil.example:{PORT}",
        f"http://127.0.0.1:{PORT}.evil.example",
        f"http://127.0.0.1:{PORT}@evil.example",
        f"http://localhost.:{PORT}",
        f"http://user@127.0.0.1:{PORT}",
        f"http://127.0.0.1:{PORT}/",
        f"file://127.0.0.1:{PORT}",
        f"http://127.0.0.1:{PORT} http://evil.example",
    ],
)
async def test_a_foreign_origin_is_refused_before_the_token_is_looked_at(origin: str) -> None:
    assert await status(allowed(("origin", origin))) == 403
    assert await status([("host", HERE), ("origin", origin)]) == 403


async def test_our_own_origin_passes_and_two_origins_do_not() -> None:
    for origin in (f"http://127.0.0.1:{PORT}", f"http://localhost:{PORT}", f"HTTP://[::1]:{PORT}"):
        assert await status(allowed(("origin", origin))) == 200
    twice = [("origin", f"http://127.0.0.1:{PORT}")] * 2
    assert await status(allowed(*twice)) == 403


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN.upper()}",
        f"Bearer Bearer {TOKEN}",
        f"Bearer {TOKEN}, Bearer x",
        f"Bearer {TOKEN} x",
        "Bearer \xff\xfe",
    ],
)
async def test_without_the_very_token_nobody_is_served(given: str) -> None:
    assert await status([("host", HERE), ("authorization", given)]) == 401


async def test_a_token_counts_in_its_header_alone_and_once() -> None:
    assert await status([("host", HERE)]) == 401
    assert await status([("host", HERE), ("cookie", f"token={TOKEN}")]) == 401
    assert await status(allowed(("authorization", f"Bearer {TOKEN}"))) == 401
    assert await status([("host", HERE), ("authorization", f"bearer {TOKEN}")]) == 200


@pytest.mark.parametrize("path", ["/", "", "/mcp/", "/MCP", "/mcp/x", "//mcp", "/sse", "/.well-known/x"])
async def test_there_is_nothing_but_the_endpoint(path: str) -> None:
    assert await status(allowed(), path=path) == 404


@pytest.mark.parametrize("method", ["OPTIONS", "HEAD", "PUT", "PATCH", "TRACE", "CONNECT"])
async def test_no_other_method_is_answered_so_no_page_is_ever_allowed_by_cors(method: str) -> None:
    assert await status(allowed(), method=method) == 405


async def test_on_port_80_the_host_needs_no_port() -> None:
    assert await status(allowed(host="localhost"), port=80) == 200
    assert await status(allowed(host=HERE), port=80) == 421


async def test_a_named_address_is_called_by_that_name_alone() -> None:
    assert await status(allowed(host=f"10.0.0.5:{PORT}"), host="10.0.0.5") == 200
    assert await status(allowed(host=HERE), host="10.0.0.5") == 421


async def test_who_listens_on_all_addresses_is_called_by_any_and_by_no_name() -> None:
    for host in ("0.0.0.0", "::"):
        assert await status(allowed(host=f"10.0.0.5:{PORT}"), host=host) == 200
        assert await status(allowed(host=f"[fd00::1]:{PORT}"), host=host) == 200
        assert await status(allowed(host=f"localhost:{PORT}"), host=host) == 200
        assert await status(allowed(host=f"evil.example:{PORT}"), host=host) == 421
        assert await status(allowed(host=f"127.0.0.1.evil.example:{PORT}"), host=host) == 421


def test_what_is_this_machine_only_is_known() -> None:
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "127.3.4.5")] == [True] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.5", "example.org")] == [False] * 4
