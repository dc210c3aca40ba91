"""Logging in at an MCP server, and out: a code by way of the user's browser (OAuth 2.1, PKCE), exchanged for tokens that are kept."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlencode

from handwork.config import MCPServerSettings
from handwork.config.mcp import MCPLoginSettings
from handwork.errors import MCPUnavailable
from handwork.mcp.address import Address, address_of
from handwork.mcp.login_alone import check_encrypted, fits, log_in_alone
from handwork.mcp.login_client import Client, client_for, secret_of
from handwork.mcp.login_discovery import Issuer, find_issuer
from handwork.mcp.login_redirect import Expected, Landing, landing
from handwork.mcp.login_web import checked, post, signed, tokens_of
from handwork.mcp.own_command import own_command
from handwork.mcp.tokens import Grant, TokenStore

PATIENCE = 600.0
"""Seconds that a person has for the browser."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who logs in. `visit` is given the address to open and says it, too; `paste` brings an address that they typed (None: nobody can);
    `wrong` is called for one that is not the answer, with how the answer begins."""

    visit: Callable[[str], None]
    paste: Callable[[], Awaitable[str]] | None = None
    wrong: Callable[[str], None] = lambda expected: None


async def log_in(
    name: str,
    settings: MCPServerSettings,
    *,
    home: Path,
    environ: Mapping[str, str],
    person: Person,
    scope: str = "",
    patience: float = PATIENCE,
) -> str | None:
    """Log in at a server and keep the tokens; returns where, in words, or None if the server wants no login.

    Raises MCPUnavailable: it cannot be reached, its login cannot be used or was refused, nobody answered in time.
    """
    address = address_of(name, settings, environ)
    check_encrypted(address)
    if address.own_login:
        raise MCPUnavailable(
            f"The entry of the MCP server {name} says already who you are, so a login would not be used",
            hint="take the Authorization out of its headers, or the user out of its url",
            lasting=True,
        )
    if settings.oauth.alone:
        grant = await log_in_alone(address, settings.oauth, environ, scope)
    else:
        grant = await _log_in(address, settings.oauth, environ, person, scope, patience)
    if grant is None:
        return None
    store = TokenStore(home, address)
    async with store.alone():
        return await store.write(grant)


async def _log_in(
    address: Address, given: MCPLoginSettings, environ: Mapping[str, str], person: Person, scope: str, patience: float
) -> Grant | None:
    """What a person's login brings; None if the server wants none."""
    issuer = await find_issuer(address, environ, expected=given.issuer)
    if issuer is None:
        return None
    async with landing(given.redirect_port, address.name) as page:
        client = await client_for(address, given, issuer, page.address, environ)
        attempt = _Attempt(address, issuer, client, page.address, scope or given.scope or issuer.scope)
        page.expected = Expected(address.name, attempt.state, issuer.issuer, issuer.names_itself)
        person.visit(attempt.page)
        code = page.expected.code(await _answer(address, page, person, patience))
        return await attempt.exchanged(code, environ)


async def log_out(
    name: str, settings: MCPServerSettings, *, home: Path, environ: Mapping[str, str]
) -> tuple[bool, str]:
    """Forget the tokens for a server; whether there were any, and '' or why the server may still take them."""
    address = address_of(name, settings, environ)
    store = TokenStore(home, address)
    async with store.alone():
        grant = await store.read()
        there = await store.forget()
    if grant is None:
        return there, ""
    if not grant.revocation_endpoint:
        return there, "the server offers no way to take tokens back: they end by themselves"
    try:
        if settings.oauth.alone and fits(grant, settings.oauth):
            grant = replace(grant, client_secret=secret_of(address, settings.oauth, environ))
        await _revoke(address, grant, environ)
    except MCPUnavailable as error:
        return there, error.what
    return there, ""


async def _revoke(address: Address, grant: Grant, environ: Mapping[str, str]) -> None:
    """Take the tokens back at their issuer (RFC 7009)."""
    url = checked(grant.revocation_endpoint, address, "an address to take tokens back")
    for kind, token in (("refresh_token", grant.refresh_token), ("access_token", grant.access_token)):
        if not token:
            continue
        form, headers = signed(
            {"token": token, "token_type_hint": kind}, grant.client_id, grant.client_secret, grant.client_method
        )
        reply = await post(url, form, address, environ, headers)
        if reply.status >= 400:
            raise MCPUnavailable(f"taking the tokens back was refused: {reply.problem}")


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One login under way: what the browser's answer and the exchange must match."""

    address: Address
    issuer: Issuer
    client: Client
    redirect: str
    scope: str
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)
    state: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def page(self) -> str:
        """Where the person logs in."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.client.id,
            "redirect_uri": self.redirect,
            "state": self.state,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "resource": self.issuer.resource,
            **({"scope": self.scope} if self.scope else {}),
            **({"prompt": "consent"} if "offline_access" in self.scope.split() else {}),
        }
        return f"{self.issuer.authorize}{'&' if '?' in self.issuer.authorize else '?'}{urlencode(query)}"

    async def exchanged(self, code: str, environ: Mapping[str, str]) -> Grant:
        """The tokens for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect,
            "code_verifier": self.verifier,
            "resource": self.issuer.resource,
        }
        client, issuer = self.client, self.issuer
        form, headers = signed(form, client.id, client.secret, client.method)
        reply = await post(issuer.token, form, self.address, environ, headers)
        access, refresh, lifetime, granted = tokens_of(reply, self.address, "The login")
        return Grant(
            issuer=issuer.issuer,
            token_endpoint=issuer.token,
            revocation_endpoint=issuer.revoke,
            client_id=client.id,
            client_secret=client.secret,
            client_method=client.method,
            resource=issuer.resource,
            access_token=access,
            refresh_token=refresh,
            scope=granted or self.scope,
            until=time.time() + lifetime if lifetime else 0.0,
        )


async def _answer(address: Address, page: Landing, person: Person, patience: float) -> dict[str, str]:
    """What the browser brings, or the person."""
    pasting = asyncio.create_task(_pasted(page, person)) if person.paste else None
    try:
        async with asyncio.timeout(patience):
            return await asyncio.shield(page.answer)
    except TimeoutError:
        raise MCPUnavailable(
            f"The login at the MCP server {address.name} was not completed within {patience:g} s",
            hint=f"{own_command('login', address.name)} begins anew",
        ) from None
    finally:
        if pasting is not None:
            pasting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pasting


async def _pasted(page: Landing, person: Person) -> None:
    assert person.paste is not None
    while text := await person.paste():
        if page.take(text):
            return
        person.wrong(page.address)
