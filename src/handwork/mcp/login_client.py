"""Who Handwork is to an authorization server: a client that was registered by hand, or is registered now (RFC 7591)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from handwork.config.masking import VARIABLE
from handwork.config.mcp import MCPLoginSettings
from handwork.errors import MCPUnavailable
from handwork.mcp.address import Address
from handwork.mcp.login_discovery import Issuer
from handwork.mcp.login_web import Reply, post


@dataclass(frozen=True, slots=True)
class Client:
    """`method` is how it proves that it is itself when it asks for tokens."""

    id: str
    secret: str = field(default="", repr=False)
    method: str = "none"


async def client_for(
    address: Address, given: MCPLoginSettings, issuer: Issuer, redirect: str, environ: Mapping[str, str]
) -> Client:
    """The client of the settings, else a new one, which belongs to this issuer alone. Raises MCPUnavailable."""
    if given.client_id:
        return by_hand(address, given, issuer, environ)
    if not issuer.register:
        raise MCPUnavailable(
            f"The login of the MCP server {address.name} knows only clients that were registered there by hand",
            hint='register Handwork there, and set "oauth": {"client_id": …, "redirect_port": …} in the entry',
            lasting=True,
        )
    method = issuer.methods[0] if issuer.methods else "none"
    wanted = {
        "client_name": "Handwork",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native",
        **({"scope": issuer.scope} if issuer.scope else {}),
    }
    return _registered(address, await post(issuer.register, json.dumps(wanted).encode(), address, environ), method)


def _registered(address: Address, reply: Reply, asked: str) -> Client:
    """What was registered, which may differ from what was asked for."""
    found = (reply.data.get(key) or "" for key in ("client_id", "client_secret", "token_endpoint_auth_method"))
    client, secret, method = (value if isinstance(value, str) else "" for value in found)
    method = method or asked
    fits = method == "none" or (method in ("client_secret_basic", "client_secret_post") and secret)
    if reply.status not in (200, 201) or not client or not fits:
        raise MCPUnavailable(
            f"The login of the MCP server {address.name} did not register Handwork: {reply.problem}",
            hint='register it there by hand, and set "oauth": {"client_id": …} in the entry',
            lasting=True,
        )
    return Client(client, secret if method != "none" else "", method)


def by_hand(address: Address, given: MCPLoginSettings, issuer: Issuer, environ: Mapping[str, str]) -> Client:
    """The client of the settings. Raises MCPUnavailable where its secret is not set."""
    secret = secret_of(address, given, environ)
    fitting = [method for method in issuer.methods if (method == "none") is not bool(secret)]
    return Client(given.client_id, secret, fitting[0] if fitting else "client_secret_post" if secret else "none")


def secret_of(address: Address, given: MCPLoginSettings, environ: Mapping[str, str]) -> str:
    """The client's secret, '' if it has none. Raises MCPUnavailable where it is to be in a variable that is not set."""
    variable = VARIABLE.fullmatch(given.client_secret)
    if variable and not environ.get(variable["name"]):
        raise MCPUnavailable(
            f"The client_secret of the MCP server {address.name} is to be in {variable['name']}, which is not set",
            hint="set the variable, or change the entry's oauth settings",
            lasting=True,
        )
    return environ[variable["name"]].strip() if variable else given.client_secret
