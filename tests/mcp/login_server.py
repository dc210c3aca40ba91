"""An authorization server on loopback, and an MCP server that believes its tokens; both can be told to misbehave."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode

import aiohttp
from aiohttp import web

from handwork.config import MCPServerSettings
from handwork.mcp.login import Person, log_in
from tests.mcp.http_servers import Plain, serving

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Authority:
    """The authorization server. `changes` go into its metadata; `instead` answers a path in its own way; `seen` keeps the forms."""

    def __init__(self) -> None:
        self.origin = ""
        self.changes: dict[str, Any] = {}
        self.instead: dict[str, Handler] = {}
        self.back: dict[str, str | None] = {}
        """Changes to what the browser is sent back with."""
        self.lifetime: int | None = 3600
        self.program = "robot:hush"
        """The client that may log in without a person, and its secret."""
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.clients: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.access: dict[str, str] = {}
        """Tokens that are good, and the resource each is for."""
        self.refresh: dict[str, str] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if request.method == "POST" and request.content_type != "application/json":
            self.seen.append((path, dict(parse_qsl(await request.text()))))
        elif path == "/authorize":
            self.seen.append((path, dict(request.query)))
        if instead := self.instead.get(path):
            return await instead(request)
        known: dict[str, Handler] = {
            "/.well-known/oauth-authorization-server": self._metadata,
            "/register": self._register,
            "/authorize": self._authorize,
            "/token": self._token,
            "/revoke": self._revoke,
        }
        return await known[path](request) if path in known else web.Response(status=404)

    def asked(self, path: str) -> list[dict[str, str]]:
        return [form for place, form in self.seen if place == path]

    async def _metadata(self, request: web.Request) -> web.Response:
        told: dict[str, Any] = {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "revocation_endpoint": f"{self.origin}/revoke",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
            "authorization_response_iss_parameter_supported": True,
        }
        return web.json_response({name: value for name, value in (told | self.changes).items() if value is not None})

    async def _register(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        client = {**wanted, "client_id": f"client-{len(self.clients) + 1}"}
        self.clients[client["client_id"]] = client
        return web.json_response(client, status=201)

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        code = f"code-{secrets.token_hex(8)}"
        self.codes[code] = asked
        told = {"code": code, "state": asked["state"], "iss": self.origin} | self.back
        query = urlencode({name: value for name, value in told.items() if value is not None})
        return web.Response(status=302, headers={"Location": f"{asked['redirect_uri']}?{query}"})

    async def _token(self, request: web.Request) -> web.Response:
        form = self.seen[-1][1]
        if form["grant_type"] == "client_credentials":
            pair = base64.b64decode(request.headers.get("authorization", "").removeprefix("Basic ")).decode()
            good = pair == self.program
            return self.give(form["resource"], lasts=False) if good else _refusal("invalid_client", 401)
        if form["grant_type"] == "refresh_token":
            resource = self.refresh.pop(form["refresh_token"], None)  # rotation: each is good for once
            return self.give(resource) if resource else web.json_response({"error": "invalid_grant"}, status=400)
        asked = self.codes.pop(form["code"], None)
        digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        good = asked and (digest, form["redirect_uri"], form["resource"], form["client_id"]) == (
            asked["code_challenge"],
            asked["redirect_uri"],
            asked["resource"],
            asked["client_id"],
        )
        return self.give(form["resource"]) if good else web.json_response({"error": "invalid_grant"}, status=400)

    def give(self, resource: str, *, lasts: bool = True) -> web.Response:
        """New tokens."""
        access, refresh = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        self.access[access], self.refresh[refresh] = resource, resource
        renews = refresh if lasts else None
        told = {"access_token": access, "token_type": "bearer", "refresh_token": renews, "expires_in": self.lifetime}
        return web.json_response({name: value for name, value in told.items() if value is not None})

    async def _revoke(self, request: web.Request) -> web.Response:
        token = self.seen[-1][1]["token"]
        self.access.pop(token, None)
        self.refresh.pop(token, None)
        return web.Response()


def _refusal(error: str, status: int) -> web.Response:
    return web.json_response({"error": error}, status=status)


class Guarded:
    """An MCP server that wants a token of an authority, for itself."""

    def __init__(self, authority: Authority) -> None:
        self.plain, self.authority = Plain(), authority
        self.about: dict[str, Any] = {}
        """Changes to what it says of itself."""
        self.challenge: str | None = None
        self.greets = False
        """It lets anybody say hello, and wants a token for what comes then."""
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/.well-known/oauth-protected-resource"):
            told = {"resource": self.url, "authorization_servers": [self.authority.origin]} | self.about
            return web.json_response({name: value for name, value in told.items() if value is not None})
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        hello = self.greets and b'"method":"initialize"' in (await request.read()).replace(b" ", b"")
        if hello or self.authority.access.get(token) == self.url:
            return await self.plain.handle(request)
        where = f"{self.plain.origin}/.well-known/oauth-protected-resource/mcp"
        said = f'Bearer resource_metadata="{where}"' if self.challenge is None else self.challenge
        return web.Response(status=401, headers={"WWW-Authenticate": said} if said else {})


@asynccontextmanager
async def guarded() -> AsyncIterator[Guarded]:
    """Both at work, each at an origin of its own."""
    authority = Authority()
    server = Guarded(authority)
    one, other = web.Application(), web.Application()
    one.router.add_route("*", "/{path:.*}", authority.handle)
    other.router.add_route("*", "/{path:.*}", server.handle)
    async with serving(one) as issuer, serving(other) as origin:
        authority.origin = issuer
        server.plain.origin, server.url = origin, f"{origin}/mcp"
        yield server


class Visitor:
    """A person with a browser, who logs in wherever they are sent; keeps the addresses and what the last page said."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.pages: list[str] = []
        self.wrong = 0
        self.goes = True
        self._visits: set[asyncio.Task[None]] = set()

    def visit(self, url: str) -> None:
        self.sent.append(url)
        if self.goes:
            task = asyncio.create_task(self._go(url))
            self._visits.add(task)

    async def _go(self, url: str) -> None:
        async with aiohttp.ClientSession() as browser, browser.get(url) as page:
            self.pages.append(await page.text())

    def _typed_wrong(self, expected: str) -> None:
        assert expected.startswith("http://127.0.0.1:")
        self.wrong += 1

    def person(self, paste: Callable[[], Awaitable[str]] | None = None) -> Person:
        return Person(self.visit, paste, self._typed_wrong)

    async def settled(self) -> None:
        """The visits are over."""
        await asyncio.gather(*self._visits)


async def logged_in(server: Guarded, home: Path, visitor: Visitor | None = None, **more: Any) -> str | None:
    """Log in at a server as a person with a browser does."""
    visitor = visitor or Visitor()
    given: dict[str, Any] = {"scope": "", "patience": 10.0, "environ": {}, "settings": {}, "paste": None} | more
    settings = MCPServerSettings.model_validate({"url": server.url, **given.pop("settings")})
    person = visitor.person(given.pop("paste"))
    try:
        return await log_in("docs", settings, home=home, person=person, **given)
    finally:
        await visitor.settled()
