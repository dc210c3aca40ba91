"""Requests to who gives out logins: addresses that a server named, so that none is believed, followed or read without end."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from handwork.config.host_names import normal_host
from handwork.config.user_proxy import is_loopback, proxy_for
from handwork.errors import MCPUnavailable
from handwork.mcp.address import Address, shown_url
from handwork.mcp.failing import shown
from handwork.mcp.http_words import unreachable
from handwork.mcp.login_place import places_of
from handwork.mcp.web import client_over, way_to
from handwork.sandbox.network.addresses import unusual

_LIMIT = 1 << 20
_SILENCE, _WHOLE = 20.0, 30.0
_URL = re.compile(r"[\x21-\x5b\x5d-\x7e]{1,8192}")
_TOKEN = re.compile(r"[\x21-\x7e]{1,65536}")
_A_YEAR = 366 * 86400


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: `data` is the JSON object, {} for anything else."""

    status: int
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """What it says against us (RFC 6749, 5.2), cleaned."""
        words = [str(self.data[key]) for key in ("error", "error_description") if isinstance(self.data.get(key), str)]
        return shown(": ".join(words)) if words else f"status {self.status}"


_FINAL = ("invalid_grant", "invalid_client", "unauthorized_client")


class LoginRefused(MCPUnavailable):
    """The other side gives no tokens; `final`: it says that what it was asked with is not valid, and will not be."""

    final = False


def checked(url: str, address: Address, what: str) -> str:
    """An address that the server named, if it may be asked at all: https, or this machine when the server is on it, too."""
    try:
        parts = urlsplit(url)
        host = normal_host(parts.hostname or "")
        whole = not parts.username and not parts.password and not parts.fragment and parts.port != 0
        whole = whole and bool(_URL.fullmatch(url))
    except (ValueError, UnicodeError):
        whole, host = False, ""
    if not whole or not host or parts.scheme not in ("https", "http"):
        raise _hostile(address, what, url, "is no address that can be asked")
    if is_loopback(host):
        if not address.local:
            raise _hostile(address, what, url, "leads to this machine")
    elif parts.scheme != "https":
        raise _hostile(address, what, url, "is not encrypted (https)")
    elif not address.local and _private(host) and not _private(urlsplit(address.url).hostname or ""):
        raise _hostile(address, what, url, "leads into a private network")
    return url


async def get(url: str, address: Address, environ: Mapping[str, str]) -> Reply:
    """Read JSON. Redirects are answers like others, and none that helps."""
    return await _ask("GET", url, address, environ, {"accept": "application/json"}, b"")


async def post(
    url: str,
    form: Mapping[str, str] | bytes,
    address: Address,
    environ: Mapping[str, str],
    headers: Mapping[str, str] = {},
) -> Reply:
    """Send a form, or JSON as bytes."""
    kind = "application/json" if isinstance(form, bytes) else "application/x-www-form-urlencoded"
    body = form if isinstance(form, bytes) else urlencode(form).encode()
    return await _ask(
        "POST", url, address, environ, {"accept": "application/json", "content-type": kind, **headers}, body
    )


def signed(form: dict[str, str], client_id: str, secret: str, method: str) -> tuple[dict[str, str], dict[str, str]]:
    """A form and headers that say which client asks (RFC 6749, 2.3.1)."""
    if method == "client_secret_basic" and secret:
        pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
        return form, {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    own = {"client_id": client_id, **({"client_secret": secret} if secret and method == "client_secret_post" else {})}
    return {**form, **own}, {}


def tokens_of(reply: Reply, address: Address, what: str) -> tuple[str, str, float, str]:
    """Access token, refresh token, lifetime and scope of an answer; raises LoginRefused for what is none."""
    if reply.status >= 500 or reply.status == 429:
        raise MCPUnavailable(
            f"{what} at the MCP server {address.name} failed for now: {reply.problem}", hint="try again later"
        )
    data = reply.data
    access, refresh, scope = (data.get(key) or "" for key in ("access_token", "refresh_token", "scope"))
    bearer = str(data.get("token_type") or "bearer").lower() == "bearer"
    good = reply.status in (200, 201) and bearer and isinstance(access, str) and _TOKEN.fullmatch(access)
    if not good or not isinstance(refresh, str) or (refresh and not _TOKEN.fullmatch(refresh)):
        refusal = LoginRefused(f"{what} at the MCP server {address.name} was refused: {reply.problem}")
        refusal.final = reply.status < 500 and data.get("error") in _FINAL
        raise refusal
    try:
        lifetime = float(data.get("expires_in") or 0)
    except (TypeError, ValueError):
        lifetime = 0.0
    lifetime = min(lifetime, _A_YEAR) if math.isfinite(lifetime) and lifetime > 0 else 0.0
    return access, refresh, lifetime, scope if isinstance(scope, str) else ""


async def _ask(
    method: str, url: str, address: Address, environ: Mapping[str, str], headers: Mapping[str, str], body: bytes
) -> Reply:
    import httpx2

    where = f"{shown_url(url)}, where the MCP server {address.name} sends for logins,"
    try:
        async with asyncio.timeout(_WHOLE), client_over(way_to(url, environ), silence=_SILENCE) as client:
            places = [] if address.local or proxy_for(url, environ) else await places_of(url, address)
            response = await _sent(client, places, method, url, headers, body)
            try:
                text = await _bounded(response)
            finally:
                await response.aclose()
    except TimeoutError:
        raise MCPUnavailable(f"{where} did not answer") from None
    except httpx2.HTTPError as error:
        raise unreachable(address, error, where) from None
    plain = {name.lower(): value for name, value in response.headers.items()}
    return Reply(response.status_code, _object(text), plain)


async def _sent(
    client: Any, places: Sequence[str], method: str, url: str, headers: Mapping[str, str], body: bytes
) -> Any:
    """The answer of the first of the places that is there; without places, of where the library finds the host."""
    import httpx2

    parts = urlsplit(url)
    wait = httpx2.Timeout(_SILENCE, connect=_WHOLE / (len(places) + 1))
    for number, place in enumerate(places, 1):
        request = client.build_request(
            method,
            _at(url, place),
            headers={"host": parts.netloc, **headers},
            content=body or None,
            timeout=wait,
            extensions={"sni_hostname": parts.hostname},  # whose certificate it has to be
        )
        try:
            return await client.send(request, stream=True, follow_redirects=False)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):  # nothing was sent
            if number == len(places):
                raise
    request = client.build_request(method, url, headers=headers, content=body or None)
    return await client.send(request, stream=True, follow_redirects=False)


def _at(url: str, place: str) -> str:
    """The URL with an address in the place of its host."""
    parts = urlsplit(url)
    netloc = f"[{place}]" if ":" in place else place
    return parts._replace(netloc=netloc if parts.port is None else f"{netloc}:{parts.port}").geturl()


async def _bounded(response: Any) -> bytes:
    """The body; nothing of one that is too large or compressed."""
    pieces, size = list[bytes](), 0
    if response.headers.get("content-encoding", "identity") not in ("", "identity"):
        return b""
    async for piece in response.stream:
        pieces.append(piece)
        size += len(piece)
        if size > _LIMIT:
            return b""
    return b"".join(pieces)


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _private(host: str) -> bool:
    """Whether it is an address (not a name) that is not part of the public net."""
    try:
        return bool(unusual(normal_host(host)))
    except (ValueError, UnicodeError):
        return False


def _hostile(address: Address, what: str, url: str, why: str) -> MCPUnavailable:
    return MCPUnavailable(
        f"The MCP server {address.name} names {what} that {why}, so it was not asked: {shown(shown_url(url))}",
        hint="tell who runs the server; nothing was sent there",
        lasting=True,
    )
