"""Logging in at an MCP server as a program, without a person (OAuth client credentials): its tokens, and new ones when they end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from handwork.config.mcp import MCPLoginSettings
from handwork.errors import MCPUnavailable
from handwork.mcp.address import Address
from handwork.mcp.login_client import by_hand, secret_of
from handwork.mcp.login_discovery import Issuer, find_issuer
from handwork.mcp.login_web import LoginRefused, checked, post, signed, tokens_of
from handwork.mcp.tokens import Grant


def fits(grant: Grant, given: MCPLoginSettings) -> bool:
    """Whether a login is one of this client, as the entry has it now."""
    known = not given.issuer or grant.issuer.rstrip("/") == given.issuer.rstrip("/")
    return grant.client_id == given.client_id and not grant.refresh_token and known


async def log_in_alone(
    address: Address, given: MCPLoginSettings, environ: Mapping[str, str], scope: str = ""
) -> Grant | None:
    """Find who gives out logins, and log in there; None if the server wants no login. Raises MCPUnavailable."""
    check_encrypted(address)
    issuer = await find_issuer(address, environ, expected=given.issuer, codes=False)
    if issuer is None:
        return None
    method = by_hand(address, given, issuer, environ).method
    return await again(_blank(issuer, given, method, scope or given.scope or issuer.scope), address, given, environ)


async def again(grant: Grant, address: Address, given: MCPLoginSettings, environ: Mapping[str, str]) -> Grant:
    """New tokens from who gave out the last ones. Raises MCPUnavailable."""
    check_encrypted(address)
    form = {"grant_type": "client_credentials", "resource": grant.resource}
    form |= {"scope": grant.scope} if grant.scope else {}
    form, headers = signed(form, grant.client_id, secret_of(address, given, environ), grant.client_method)
    url = checked(grant.token_endpoint, address, "an address for tokens")
    try:
        access, _, lifetime, scope = tokens_of(
            await post(url, form, address, environ, headers), address, "Logging in without a person"
        )
    except LoginRefused as refusal:
        hint = "check client_id, client_secret and scope in the entry's oauth settings"
        raise MCPUnavailable(refusal.what, hint=hint, lasting=True) from None
    until = time.time() + lifetime if lifetime else 0.0
    return replace(grant, access_token=access, scope=scope or grant.scope, until=until)


def check_encrypted(address: Address) -> None:
    """Raises MCPUnavailable where a login would go over an unencrypted connection."""
    if not address.local and address.url.lower().startswith("http:"):
        raise MCPUnavailable(
            f"A login at the MCP server {address.name} would go over an unencrypted connection",
            hint="make its url one of https://",
            lasting=True,
        )


def _blank(issuer: Issuer, given: MCPLoginSettings, method: str, scope: str) -> Grant:
    """A login without a token. The secret is not kept with it: it stands where the entry says."""
    return Grant(
        issuer=issuer.issuer,
        token_endpoint=issuer.token,
        revocation_endpoint=issuer.revoke,
        client_id=given.client_id,
        client_method=method,
        resource=issuer.resource,
        access_token="",
        scope=scope,
    )
