"""Stands before the MCP endpoint: who may speak with us over HTTP at all."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any, TypeAlias

from handwork.server.token import is_token

PATH = "/mcp"
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_ORIGIN = re.compile(
    r"(?P<scheme>[a-z]+)://(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9.-]+))(?::(?P<port>\d{1,5}))?",
    re.ASCII | re.I,
)
"""What a browser sends as Origin, and behind a scheme as Host: parsers of URLs forgive too much."""
_METHODS = ("GET", "POST", "DELETE")
_PATIENCE = 30.0
"""Seconds in which the next piece of a request has to come."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Guard:
    """Lets a request pass if it is for us and from somebody who knows the token.

    In this order: path, Host, Origin, method, token. So a page in a browser, whatever name it has made point to this machine,
    learns nothing and tries no token. `names` are the hosts that clients may call us by, None: by any address, as no page's name
    can be one; `port` is ours.
    """

    def __init__(self, app: App, *, token: str, names: Collection[str] | None, port: int) -> None:
        self._app, self._token, self._port = app, token, port
        self._names = {_plain(name) for name in names} if names is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, text, more = self._refusal(scope)
        if status:
            await _refuse(send, status, text, more)
        else:
            await self._app(scope, _soon(receive), send)

    def _refusal(self, scope: Scope) -> tuple[int, str, dict[str, str]]:
        """Status 0: it may pass."""
        if scope["path"] != PATH:
            return 404, "Not found", {}
        hosts, origins = _all(scope, b"host"), _all(scope, b"origin")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return 421, "This host is not served here", {}
        if len(origins) > 1 or (origins and not self._is_own_origin(origins[0])):
            return 403, "This origin may not speak with us", {}
        if scope["method"] not in _METHODS:
            return 405, "Method not allowed", {"allow": ", ".join(_METHODS)}
        if not self._knows_token(_all(scope, b"authorization")):
            return 401, "A bearer token is needed: it stands in the server's token file", {"www-authenticate": "Bearer"}
        return 0, "", {}

    def _is_ours(self, host: str) -> bool:
        return self._is_own_origin(f"http://{host}")

    def _is_own_origin(self, origin: str) -> bool:
        found = _parted(origin)
        return found is not None and found[0] == "http" and found[2] == self._port and self._is_named(found[1])

    def _is_named(self, host: str) -> bool:
        return _is_address(host) or host == "localhost" if self._names is None else host in self._names

    def _knows_token(self, given: list[str]) -> bool:
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(" ")
        return scheme.lower() == "bearer" and is_token(token.strip(), self._token)


def names_of(host: str) -> list[str] | None:
    """The names by which a server that listens on a host may be called; None: any address, as it listens on all."""
    if _is_address(host) and ipaddress.ip_address(host).is_unspecified:
        return None
    return [host, *_LOOPBACK] if is_loopback(host) else [host]


def is_loopback(host: str) -> bool:
    """Whether what listens there can be reached from this machine only."""
    return ipaddress.ip_address(host).is_loopback if _is_address(host) else host.lower() == "localhost"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _soon(receive: Receive) -> Receive:
    """The same, for a client that sends its request in good time: one that does not counts as gone."""
    whole = False

    async def received() -> MutableMapping[str, Any]:
        nonlocal whole
        if whole:
            return await receive()
        try:
            async with asyncio.timeout(_PATIENCE):
                message = await receive()
        except TimeoutError:
            return {"type": "http.disconnect"}
        whole = not message.get("more_body", False)
        return message

    return received


def _plain(name: str) -> str:
    return name.lower().strip("[]")


def _parted(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an origin; None for whatever is none, in however odd a spelling."""
    found = _ORIGIN.fullmatch(url)
    if found is None:
        return None
    scheme, host, port = found["scheme"], found["address"] or found["name"], found["port"]
    return scheme.lower(), host.lower(), int(port) if port else 80


def _all(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


async def _refuse(send: Send, status: int, text: str, more: dict[str, str]) -> None:
    body = text.encode()
    headers = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), **more}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": [*pairs, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
