"""The way to a server: straight to an address that was checked, or through the proxy of the user's own environment."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Mapping, Sequence
from urllib.parse import unquote, urlsplit

from handwork.config.allow_list import is_address, place
from handwork.config.host_names import normal_host
from handwork.config.user_proxy import proxy_for
from handwork.errors import ConfigError
from handwork.sandbox.network.addresses import unusual
from handwork.sandbox.network.gate import Gate
from handwork.sandbox.network.messages import Request, read_response
from handwork.sandbox.network.refusal import Refusal
from handwork.sandbox.network.resolve import Resolve
from handwork.sandbox.network.stream import Stream, connected

_PROXY_LIMIT = 30.0
_LOOPBACK = ("127.0.0.1", "::1")


class Ways:
    """Connects to places that the gate lets through, and checks the addresses of their names as well."""

    def __init__(self, gate: Gate, resolve: Resolve, environ: Mapping[str, str]) -> None:
        self._gate, self._resolve, self._environ = gate, resolve, environ

    async def tunnel(self, host: str, port: int) -> Stream:
        """A stream to the place itself. Raises Refusal."""
        through = self._proxy("http" if port == 80 else "https", host, port)
        if through is None:
            return await connected(await self._addresses(host, port), port, place(host, port))
        stream = await through.stream()
        try:
            await _ask_for_tunnel(stream, place(host, port), through.lines())
        except BaseException:
            stream.abort()
            raise
        return stream

    async def plain(self, request: Request) -> tuple[Stream, bytes]:
        """A stream for one http:// request, and the head to send there. Raises Refusal."""
        through = self._proxy("http", request.host, request.port)
        if through is not None:
            return await through.stream(), request.head(whole=True, more=through.lines())
        addresses = await self._addresses(request.host, request.port)
        return await connected(addresses, request.port, request.place), request.head()

    def _proxy(self, scheme: str, host: str, port: int) -> _UserProxy | None:
        try:
            found = proxy_for(f"{scheme}://{place(host, port)}/", self._environ)
        except ConfigError as error:  # a word that is no address, or a kind that is not spoken (SOCKS)
            raise Refusal(502, f"{error.what}; nothing is reached past it") from None
        return _UserProxy(found, self._resolve) if found else None

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a place that may be connected to. An address that was asked for has passed the gate by itself."""
        if is_address(host):
            return [host]
        if host == "localhost" or host.endswith(".localhost"):
            return _LOOPBACK
        try:
            found = [address for address in await self._resolve(host) if "%" not in address]
        except OSError as error:
            raise Refusal(502, f"the name {host} is not known: {error.strerror or error}") from None
        if not found:
            raise Refusal(502, f"the name {host} has no address")
        return [address for address in found if not unusual(address)] or await self._allowed(host, port, found)

    async def _allowed(self, host: str, port: int, found: Sequence[str]) -> Sequence[str]:
        # Whoever owns a name says where it leads: an address that is not public must be allowed by itself.
        first, *more = sorted(map(normal_host, found), key=lambda address: ":" in address)
        for address in (first, *more[:1]):
            try:
                await self._gate.check(address, port, host)
            except Refusal as refusal:
                refused = refusal
            else:
                return [address]
        raise refused


class _UserProxy:
    """The proxy that the user's environment names, with what it wants to see of the user."""

    def __init__(self, url: str, resolve: Resolve) -> None:
        self._resolve = resolve
        parts = urlsplit(url)
        self._name, self._tls = parts.hostname or "", parts.scheme == "https"
        self._port = parts.port or (443 if self._tls else 80)
        self._user, self._password = parts.username, parts.password

    def lines(self) -> list[str]:
        if self._user is None:
            return []
        both = f"{unquote(self._user)}:{unquote(self._password or '')}"
        return [f"Proxy-Authorization: Basic {base64.b64encode(both.encode()).decode()}"]

    async def stream(self) -> Stream:
        """Raises Refusal. Its name is the user's own word: whatever it leads to is fine."""
        shown = f"the proxy of this machine ({place(self._name, self._port)})"
        try:
            addresses = [self._name] if is_address(self._name) else await self._resolve(self._name)
        except OSError as error:
            raise Refusal(502, f"{shown} is not known: {error.strerror or error}") from None
        tls = ssl.create_default_context() if self._tls else None
        return await connected(addresses, self._port, shown, tls, self._name)


async def _ask_for_tunnel(stream: Stream, where: str, lines: Sequence[str]) -> None:
    head = "\r\n".join([f"CONNECT {where} HTTP/1.1", f"Host: {where}", *lines, "", ""])
    try:
        async with asyncio.timeout(_PROXY_LIMIT):
            await stream.send(head.encode())
            answer = read_response(await stream.reader.readuntil(b"\r\n\r\n"))
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise Refusal(502, f"the proxy of this machine does not answer about {where}") from None
    if answer.status // 100 != 2:
        raise Refusal(502, f"the proxy of this machine refuses {where}: {answer.status} {answer.reason[:100]}")
