"""The token that goes along with requests to one MCP server, renewed in time, by one program at a time."""

from __future__ import annotations

import asyncio
import contextlib

from handwork.config.mcp import MCPLoginSettings
from handwork.errors import MCPLoginNeeded, MCPUnavailable
from handwork.mcp.address import Address
from handwork.mcp.login_alone import again, fits, log_in_alone
from handwork.mcp.login_client import secret_of
from handwork.mcp.login_web import LoginRefused, checked, post, signed, tokens_of
from handwork.mcp.own_command import own_command
from handwork.mcp.surroundings import Surroundings
from handwork.mcp.tokens import Grant, TokenStore

_PATIENCE = 10.0
"""Seconds for a renewal under way when the connection ends: its answer may hold the only token that is still good."""


class Bearer:
    """Signs the requests of one connection; asks the store at the first of them. Nobody is ever asked to log in here."""

    def __init__(self, address: Address, surroundings: Surroundings, login: MCPLoginSettings | None = None) -> None:
        self._address, self._surroundings = address, surroundings
        self._login = login or MCPLoginSettings()
        self._store = TokenStore(surroundings.home, address, lambda text: surroundings.notify("warning", text))
        self._grant: Grant | None = None
        self._looked = False
        self._renewal: asyncio.Task[str] | None = None

    async def token(self) -> str:
        """The token that goes along; '' if there is none. Raises MCPLoginNeeded if it has ended and cannot be renewed."""
        if not self._looked:
            self._adopt(await self._kept())
            self._looked = True
        grant = self._grant
        if grant is None or not grant.ends_soon():
            return grant.access_token if grant else ""
        try:
            return await self.renewed(grant.access_token) or grant.access_token
        except MCPLoginNeeded:
            raise
        except MCPUnavailable:
            if grant.over():
                raise
            return grant.access_token

    async def renewed(self, refused: str) -> str:
        """The token in place of one that the server refused, or that ends; '' if there is none."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(refused), name=f"mcp {self._address.name} renewal")
        return await asyncio.shield(self._renewal)

    async def close(self) -> None:
        """Wait for a renewal under way, so that what it brings is kept."""
        if self._renewal is not None and not self._renewal.done():
            with contextlib.suppress(MCPUnavailable, TimeoutError):
                await asyncio.wait_for(self._renewal, _PATIENCE)

    async def _renew(self, refused: str) -> str:
        if not self._login.alone and await self._store.read() is None:
            self._adopt(None)  # there never was a login: nothing is locked, and no folder made for it
            return ""
        async with self._store.alone():
            grant = await self._kept()
            if grant is not None and grant.access_token != refused and not grant.over():  # another program was faster
                self._adopt(grant)
                return grant.access_token
            if self._login.alone:
                return await self._log_in(grant)
            if grant is None:
                self._adopt(None)
                return ""
            return await self._exchange(grant) if grant.refresh_token else ""

    async def _kept(self) -> Grant | None:
        """The login that is kept; where a program logs in by itself, only one of the client that the entry names."""
        grant = await self._store.read()
        return None if grant is not None and self._login.alone and not fits(grant, self._login) else grant

    async def _log_in(self, last: Grant | None) -> str:
        """A login that needs nobody; '' where the server wants none."""
        address, given, environ = self._address, self._login, self._surroundings.environ
        self._surroundings.hide(frozenset({secret_of(address, given, environ)}))
        grant = await (again(last, address, given, environ) if last else log_in_alone(address, given, environ))
        if grant is None:
            self._adopt(None)
            return ""
        return await self._keep(grant)

    async def _exchange(self, grant: Grant) -> str:
        address, environ = self._address, self._surroundings.environ
        form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token, "resource": grant.resource}
        form, headers = signed(form, grant.client_id, grant.client_secret, grant.client_method)
        url = checked(grant.token_endpoint, address, "an address for tokens")
        try:
            tokens = tokens_of(await post(url, form, address, environ, headers), address, "Renewing the login")
        except LoginRefused as refusal:
            if refusal.final:
                await self._store.forget()
                self._adopt(None)
            raise MCPLoginNeeded(refusal.what, hint=own_command("login", address.name), lasting=True) from None
        return await self._keep(grant.renewed(*tokens))

    async def _keep(self, grant: Grant) -> str:
        await self._store.write(grant)  # the old one is worth nothing any more: the new one is kept before it is used
        self._adopt(grant)
        return grant.access_token

    def _adopt(self, grant: Grant | None) -> None:
        self._grant = grant
        if grant is not None:
            self._surroundings.hide(grant.secrets)
