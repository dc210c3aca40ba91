"""Who gives out logins for an MCP server: its own word (RFC 9728), then that of the authorization server (RFC 8414, OpenID)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from handwork.config.credentials import url_origin
from handwork.errors import MCPUnavailable
from handwork.mcp.address import Address
from handwork.mcp.failing import shown
from handwork.mcp.http_words import parameter, refused, unreachable
from handwork.mcp.login_web import Reply, checked, get
from handwork.mcp.web import client_over, way_to

_SILENCE = 20.0
_METHODS = ("none", "client_secret_basic", "client_secret_post")


@dataclass(frozen=True, slots=True)
class Issuer:
    """An authorization server and what it can do. `resource` is what tokens are asked for; `scope` what the server wants at least."""

    issuer: str
    authorize: str
    token: str
    register: str
    revoke: str
    methods: tuple[str, ...]
    names_itself: bool
    """It says who it is when it sends the user back (RFC 9207)."""
    resource: str
    scope: str


async def find_issuer(
    address: Address, environ: Mapping[str, str], *, expected: str = "", codes: bool = True
) -> Issuer | None:
    """Who logs users in at this server; None if it wants no login. Raises MCPUnavailable for what cannot or must not be used.

    `expected` is who it has to be ('': whom the server names); without `codes` nobody's browser is sent there.
    """
    challenge = await _challenge(address, environ)
    resource = await _resource(address, environ, parameter(challenge or {}, "resource_metadata"))
    if challenge is None and not _list(resource, "authorization_servers"):
        return None  # some let anybody in and want a login for their tools: they say so there
    place = _list(resource, "authorization_servers")[:1] or (f"{_base(address.resource)}",)
    if expected and not _same(place[0], expected):
        raise MCPUnavailable(
            f"The MCP server {address.name} sends for logins to {shown(place[0])}, and its entry names {shown(expected)}",
            hint="nothing was sent there; check oauth.issuer in the entry, or tell who runs the server",
            lasting=True,
        )
    found = await _metadata(address, environ, place[0], known=bool(resource))
    scope = parameter(challenge or {}, "scope") or " ".join(_list(resource, "scopes_supported"))
    named = str(resource.get("resource") or address.resource)
    return _issuer(address, found, named, _lasting(found, scope) if codes else scope, codes=codes)


async def _challenge(address: Address, environ: Mapping[str, str]) -> Mapping[str, str] | None:
    """The headers of the answer to a request without a token; None if that was taken."""
    import httpx2

    first = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "handwork", "version": "0"},
        },
    }
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json", **address.headers}
    try:
        async with client_over(way_to(address.url, environ), silence=_SILENCE) as client:
            status, said = await _tried(client, address, "POST", headers, json.dumps(first))
            if status in (404, 405):  # perhaps one of the old kind
                status, said = await _tried(client, address, "GET", {**headers, "accept": "text/event-stream"}, None)
    except httpx2.HTTPError as error:
        raise unreachable(address, error) from None
    if status != 401 and status >= 300:
        raise refused(address, status, said, b"")
    return said if status == 401 else None


async def _tried(
    client: Any, address: Address, method: str, headers: Mapping[str, str], body: str | None
) -> tuple[int, dict[str, str]]:
    """Status and headers of an answer; redirects are followed within the server's origin."""
    request = client.build_request(method, address.url, headers=headers, content=body)
    for _ in range(5):
        response = await client.send(request, stream=True, follow_redirects=False)
        await response.aclose()
        following = response.next_request
        if following is None or following.method != method or url_origin(str(following.url)) != address.origin:
            break
        request = following
    return response.status_code, {name.lower(): value for name, value in response.headers.items()}


async def _resource(address: Address, environ: Mapping[str, str], named: str) -> Mapping[str, Any]:
    """What the server says of itself; {} if it says nothing, as servers of early 2025 do."""
    parts = urlsplit(address.resource)
    base, path = _base(address.resource), parts.path.rstrip("/")
    places = [f"{base}/.well-known/oauth-protected-resource{path}", f"{base}/.well-known/oauth-protected-resource"]
    for url in dict.fromkeys([named, *places] if named else places):
        reply = await get(checked(url, address, "an address of its login"), address, environ)
        _ours(address, reply, url)
        resource = reply.data.get("resource")
        if reply.status != 200 or not isinstance(resource, str):
            continue
        if not _covers(resource, address.resource):
            raise MCPUnavailable(
                f"The MCP server {address.name} says that its logins are for another server, {shown(resource)}",
                hint=f"if that is the server you mean, make it the entry's url; a login for it is of no use at {address.shown}",
                lasting=True,
            )
        return reply.data
    return {}


async def _metadata(address: Address, environ: Mapping[str, str], issuer: str, *, known: bool) -> Mapping[str, Any]:
    """What the authorization server says of itself, under its very name."""
    checked(issuer, address, "a place to log in")
    for url in _well_known(issuer):
        reply = await get(url, address, environ)
        _ours(address, reply, url)
        if reply.status != 200 or not reply.data:
            continue
        if not _same(str(reply.data.get("issuer", "")), issuer):
            raise MCPUnavailable(
                f"The login of the MCP server {address.name} is not used: what is found at {shown(issuer)} is of "
                f"{shown(str(reply.data.get('issuer', '')) or 'nobody')}",
                hint="tell who runs the server",
                lasting=True,
            )
        return reply.data
    where = f"{shown(issuer)}, where it sends for the login," if known else "it"
    raise MCPUnavailable(
        f"The MCP server {address.name} wants a login, and {where} does not say how that is done",
        hint="perhaps it takes a key: see its documentation, and put it in the entry's headers as env:NAME",
        lasting=True,
    )


def _lasting(found: Mapping[str, Any], scope: str) -> str:
    """The scope, with the one that gives a login which outlives its token."""
    asks = "offline_access" in _list(found, "scopes_supported") and scope and "offline_access" not in scope.split()
    return f"{scope} offline_access" if asks else scope


def _check_codes(address: Address, found: Mapping[str, Any]) -> None:
    if "S256" not in _list(found, "code_challenge_methods_supported"):
        raise _unfit(address, "it does not protect codes by PKCE (S256), which MCP demands")
    if (kinds := _list(found, "response_types_supported")) and "code" not in kinds:
        raise _unfit(address, "it does not give codes")


def _check_alone(address: Address, found: Mapping[str, Any]) -> None:
    if (grants := _list(found, "grant_types_supported")) and "client_credentials" not in grants:
        raise _unfit(address, "it gives programs no login of their own (client_credentials)")


def _issuer(address: Address, found: Mapping[str, Any], resource: str, scope: str, *, codes: bool) -> Issuer:
    def endpoint(name: str, *, needed: bool = False) -> str:
        url = found.get(name)
        if not isinstance(url, str) or not url:
            if needed:
                raise _unfit(address, f"it names no {name}")
            return ""
        return checked(url, address, f"a {name.replace('_', ' ')}")

    (_check_codes if codes else _check_alone)(address, found)
    methods = _list(found, "token_endpoint_auth_methods_supported") or ("client_secret_basic",)
    return Issuer(
        issuer=str(found["issuer"]),
        authorize=endpoint("authorization_endpoint", needed=codes),
        token=endpoint("token_endpoint", needed=True),
        register=endpoint("registration_endpoint"),
        revoke=endpoint("revocation_endpoint"),
        methods=tuple(method for method in _METHODS if method in methods),
        names_itself=found.get("authorization_response_iss_parameter_supported") is True,
        resource=resource,
        scope=scope,
    )


def _unfit(address: Address, why: str) -> MCPUnavailable:
    return MCPUnavailable(
        f"The login of the MCP server {address.name} cannot be used: {why}",
        hint="tell who runs the server",
        lasting=True,
    )


def _ours(address: Address, reply: Reply, url: str) -> None:
    """A failing server says nothing about what there is."""
    if reply.status >= 500 or reply.status == 429:
        raise MCPUnavailable(
            f"The login of the MCP server {address.name} cannot be looked up: {shown(url)} answered {reply.status}",
            hint="try again later",
        )


def _well_known(issuer: str) -> list[str]:
    parts = urlsplit(issuer)
    base, path = _base(issuer), parts.path.rstrip("/")
    oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
    return list(dict.fromkeys([f"{base}{oauth}{path}", f"{base}{openid}{path}", f"{base}{path}{openid}"]))


def _base(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _same(one: str, other: str) -> bool:
    """Two names of an issuer, letter by letter (RFC 8414, 3.3); with and without a slash at the end of a bare host it is the same."""
    return one == other or (one.rstrip("/") == other.rstrip("/") == _base(other))


def _covers(resource: str, url: str) -> bool:
    """Whether tokens for `resource` are tokens for this address: the same origin, and a path at or above it."""
    try:
        if url_origin(resource) != url_origin(url):
            return False
        above, below = urlsplit(resource).path.rstrip("/"), urlsplit(url).path.rstrip("/")
    except ValueError:
        return False
    return below == above or below.startswith(f"{above}/")


def _list(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = data.get(name)
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
