"""The requests of one HTTP connection: only to its origin, signed, bounded, and every failure in words."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from handwork.config.credentials import url_origin
from handwork.errors import MCPUnavailable
from handwork.mcp import http_words
from handwork.mcp.address import Address
from handwork.mcp.amount import MOST_VALUES, has_too_many
from handwork.mcp.measured import measured

LARGEST = 64 << 20
"""Bytes of one message."""
_ERROR_BODY = 1 << 16
_FAREWELL = 2.0
"""Seconds that a server has to hear that its session ends."""
_LOST = -32000
"""JSON-RPC's code, in the library that we use, for an answer that does not come any more."""
_REFUSED = -32603
"""JSON-RPC's internal error: the answer to one call is none, and the connection stands."""
_FIRST = ("server/discover", "initialize")
"""The messages that make a connection, of the new era and of the old."""
_OF_THE_TRANSFER = ("content-encoding", "content-length", "transfer-encoding")
_REDIRECTS = (301, 302, 303, 307, 308)
_NOT_THERE = (400, 404, 405)
"""With these, says the protocol, a server of the old kind (SSE) answers the first message of the new one."""


class Signs(Protocol):
    """Who we are, for the servers that want to know."""

    async def token(self) -> str:
        """The token that goes along; '' if there is none."""

    async def renewed(self, refused: str) -> str:
        """The token in place of one that the server refused; '' if there is none."""


class Wire:
    """Carries the requests of one connection, in place of httpx2's own transport and on top of it.

    What concerns one call becomes an error of that call, in the words of JSON-RPC. What keeps the connection from being made or kept
    goes to `fail`, and is raised while there is none. Until it is `ready` every failure is the connection's.
    """

    def __init__(self, address: Address, inner: Any, signs: Signs | None = None, *, old: bool = False) -> None:
        self._address, self._inner, self._signs, self._old = address, inner, signs, old
        self.fail: Callable[[MCPUnavailable], None] | None = None
        self.ready = old
        self.turned_away: MCPUnavailable | None = None
        """The first message was answered as servers do that know SSE only."""

    async def __aenter__(self) -> Wire:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *reason: Any) -> None:
        await self._inner.__aexit__(*reason)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request; the answer's head, and of anything but a stream the whole."""
        if request.method == "DELETE":
            return await self._farewell(request)
        try:
            if url_origin(str(request.url)) != self._address.origin:
                raise http_words.elsewhere(self._address, str(request.url))
            return await self._asked(request)
        except MCPUnavailable as failure:
            if self.fail is None:
                raise
            if request.method == "POST":  # the stream of a server's own words is its to offer, and opened anew
                self.fail(failure)
            return self._no(request, failure, _LOST)

    async def _asked(self, request: Any) -> Any:
        response = await self._signed(request)
        try:
            return await self._judged(request, response)
        except BaseException:
            await response.aclose()
            raise

    async def _signed(self, request: Any) -> Any:
        """Send it with the token; once more with a new one if that is refused: what was refused was not done."""
        token = await self._signs.token() if self._signs else ""
        response = await self._sent(request, token)
        if response.status_code != 401 or self._signs is None:
            return response
        try:
            renewed = await self._signs.renewed(token)
        except BaseException:
            await response.aclose()
            raise
        if not renewed:
            return response
        await response.aclose()
        return await self._sent(request, renewed)

    async def _sent(self, request: Any, token: str) -> Any:
        import httpx2

        if token:
            request.headers["authorization"] = f"Bearer {token}"
        try:
            return await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            raise http_words.unreachable(self._address, error) from None

    async def _farewell(self, request: Any) -> Any:
        """Tell the server that its session ends; what it says to that, or whether it says anything, does not matter."""
        import httpx2

        with contextlib.suppress(TimeoutError, MCPUnavailable, httpx2.HTTPError):
            async with asyncio.timeout(_FAREWELL):
                token = await self._signs.token() if self._signs else ""
                if token:
                    request.headers["authorization"] = f"Bearer {token}"
                await (await self._inner.handle_async_request(request)).aclose()
        return httpx2.Response(204)

    async def _judged(self, request: Any, response: Any) -> Any:
        status, headers = response.status_code, _plain(response.headers)
        coding = headers.get("content-encoding", "identity").strip().lower()
        if status in _REDIRECTS and "location" in headers:
            return await self._redirected(request, response, headers["location"])
        if status == 401:
            raise http_words.unknown(self._address, headers)
        if status >= 400:
            return await self._refused(request, response, headers)
        if coding not in ("", "identity"):
            return await self._failed(request, response, http_words.compressed(self._address, coding))
        answer = await self._answer(
            request, response, headers.get("content-type", "").partition(";")[0].strip().lower()
        )
        if not self.ready and request.method == "POST":
            self.ready = _method(request) not in _FIRST
        return answer

    async def _redirected(self, request: Any, response: Any, location: str) -> Any:
        """Within the origin, and as the same request, the library follows it."""
        target = request.url.join(location)
        keeps = request.method == "GET" or response.status_code in (307, 308)
        if keeps and not target.userinfo and url_origin(str(target)) == self._address.origin:
            return response
        return await self._failed(request, response, http_words.elsewhere(self._address, str(target)))

    async def _refused(self, request: Any, response: Any, headers: Mapping[str, str]) -> Any:
        """A status that says no: to the session, to the connection, or to one call."""
        status, method = response.status_code, _method(request)
        if status == 404 and request.method == "POST" and (self._old or "mcp-session-id" in request.headers):
            raise MCPUnavailable(f"The MCP server {self._address.name} has ended the session")
        body, _ = await self._body(response, _ERROR_BODY)
        gets = request.method != "POST" and not self._old
        if gets or method == "server/discover" or _is_error(body):
            await response.aclose()
            return _response(status, headers, body)
        failure = http_words.refused(self._address, status, headers, b"" if "content-encoding" in headers else body)
        if method == "initialize" and status in _NOT_THERE:
            self.turned_away = failure
            await response.aclose()
            return self._no(request, failure, _LOST)
        return await self._failed(request, response, failure)

    async def _answer(self, request: Any, response: Any, kind: str) -> Any:
        if kind == "text/event-stream":
            return measured(response)
        if self._old or response.status_code in (202, 204) or request.method != "POST":
            return response
        if kind != "application/json":
            return await self._failed(request, response, http_words.no_messages(self._address, kind))
        body, whole = await self._body(response, LARGEST)
        if not whole:
            return await self._failed(request, response, http_words.too_large(self._address, LARGEST))
        if has_too_many(body):
            return await self._failed(request, response, http_words.too_many(self._address, MOST_VALUES))
        await response.aclose()
        return _response(response.status_code, _plain(response.headers), body)

    async def _body(self, response: Any, limit: int) -> tuple[bytes, bool]:
        """The body up to a limit, and whether that is all of it."""
        import httpx2

        pieces, size = list[bytes](), 0
        try:
            async for piece in response.stream:
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    return b"".join(pieces)[:limit], False
        except httpx2.HTTPError as error:
            raise http_words.unreachable(self._address, error) from None
        return b"".join(pieces), True

    async def _failed(self, request: Any, response: Any, failure: MCPUnavailable) -> Any:
        await response.aclose()
        return self._of_the_call(request, failure)

    def _of_the_call(self, request: Any, failure: MCPUnavailable) -> Any:
        """The failure of one call as its answer; that of the connection is raised."""
        if not self.ready or _method(request) in _FIRST or request.method != "POST":
            raise failure
        return self._no(request, failure, _REFUSED)

    def _no(self, request: Any, failure: MCPUnavailable, code: int) -> Any:
        """The answer to a request that has none."""
        import httpx2

        message = _message(request)
        if "id" not in message:
            return httpx2.Response(202 if request.method == "POST" else 405)
        error = {"code": code, "message": str(failure)}
        return httpx2.Response(400, json={"jsonrpc": "2.0", "id": message["id"], "error": error})


def _message(request: Any) -> dict[str, Any]:
    """The message in a request's body, {} where there is none."""
    try:
        message = json.loads(request.read()) if request.method == "POST" else {}
    except ValueError:
        message = {}
    return message if isinstance(message, dict) else {}


def _method(request: Any) -> str:
    return str(_message(request).get("method", ""))


def _is_error(body: bytes) -> bool:
    """Whether a body is an error in the words of JSON-RPC, which says more than the status."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and message.get("jsonrpc") == "2.0" and isinstance(message.get("error"), dict)


def _plain(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _response(status: int, headers: Mapping[str, str], body: bytes) -> Any:
    """An answer that has been read, with its body as it came."""
    import httpx2

    kept = {name: value for name, value in headers.items() if name not in _OF_THE_TRANSFER}
    return httpx2.Response(status, headers=kept, content=body)
