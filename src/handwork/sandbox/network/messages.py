"""Heads of HTTP/1 messages, read strictly (RFC 9112): what two programs could read differently is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from handwork.config.allow_list import place
from handwork.config.host_names import place_of
from handwork.sandbox.network.refusal import Refusal

HEAD_LIMIT = 65_536
"""Bytes of one head."""
_FIELDS_LIMIT = 200
# Patterns as texts: they are compiled when the first request comes, and most sessions see none.
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_TARGET = r"[!-~]+"
_VALUE = r"[\t -~\x80-\xff]*"
_AUTHORITY = r"[0-9A-Za-z._:\[\]-]+"
"""No user before the host, no zone, no escapes: nobody can be misled about which host is meant."""
_VERSION = r"HTTP/1\.[01]"
_OURS = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "http2-settings"}
)
"""Fields about one connection, and about how a body is framed: each side gets its own."""

Fields: TypeAlias = tuple[tuple[str, str], ...]
Framing: TypeAlias = int | Literal["chunked", "until the end"]
"""How a body is framed: its length in bytes, chunked, or by the end of the connection."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request's head. `host` is in its one spelling; `path` is what the server is asked for, '' for CONNECT."""

    method: str
    host: str
    port: int
    path: str
    version: str
    fields: Fields

    @property
    def place(self) -> str:
        return place(self.host, self.port)

    @property
    def framing(self) -> Framing:
        return _framing(self.fields, 400) or 0

    @property
    def goes_on(self) -> bool:
        """Whether the client wants to use its connection again."""
        said = _tokens(self.fields, "connection", "proxy-connection")
        return "close" not in said if self.version == "HTTP/1.1" else False

    def head(self, *, whole: bool = False, more: Sequence[str] = ()) -> bytes:
        """The head for the server: the host is the one that was checked, nothing about this proxy or connection is in it.

        `whole`: for another proxy, with the whole address. `more` are lines of our own.
        """
        host = self.place.removesuffix(":80") if self.port == 80 else self.place
        target = f"http://{host}{self.path}" if whole else self.path
        lines = [f"{self.method} {target} HTTP/1.1", f"Host: {host}", *more, *_kept(self.fields, {"host"})]
        return _head([*lines, *_frame(_framing(self.fields, 400)), "Connection: close"])


@dataclass(frozen=True, slots=True)
class Response:
    """A response's head."""

    version: str
    status: int
    reason: str
    fields: Fields

    def framing(self, method: str) -> Framing:
        """How the body of this answer to a request of that method is framed."""
        if method == "HEAD" or self.status < 200 or self.status in (204, 304):
            return 0
        found = _framing(self.fields, 502)
        return "until the end" if found is None else found

    def head(self, framing: Framing, method: str, *, goes_on: bool) -> bytes:
        lines = [f"HTTP/1.1 {self.status} {self.reason}", *_kept(self.fields, set())]
        if method == "HEAD" or self.status == 304:
            lines += [f"{name}: {value}" for name, value in self.fields if name.lower() == "content-length"]
        elif self.status >= 200 and self.status != 204:
            lines += _frame(framing)
        return _head([*lines, *([] if goes_on or self.status < 200 else ["Connection: close"])])


def read_request(data: bytes) -> Request:
    """Raises Refusal for what is no request to a proxy, or could be read in two ways."""
    first, fields = _lines(data, 400)
    words = first.split(" ")
    if len(words) != 3 or not re.fullmatch(_TOKEN, words[0]) or not re.fullmatch(_TARGET, words[1]):
        raise Refusal(400, "the request line is malformed")
    method, target, version = words
    if not re.fullmatch(_VERSION, version):
        raise Refusal(505, f"HTTP/1.1 is spoken here, not {version[:20]}")
    if method == "CONNECT":
        host, port = _authority(target, None)
        return Request(method, host, port, "", version, fields)
    host, port, path = _absolute(target)
    _check_host(fields, host, port)
    if _framing(fields, 400) == "chunked" and version == "HTTP/1.0":
        raise Refusal(400, "HTTP/1.0 knows no chunks")
    return Request(method, host, port, path, version, fields)


def read_response(data: bytes) -> Response:
    """Raises Refusal (502) for what is no response."""
    first, fields = _lines(data, 502)
    version, _, rest = first.partition(" ")
    status, _, reason = rest.partition(" ")
    if (
        not re.fullmatch(_VERSION, version)
        or not re.fullmatch(r"[1-5][0-9][0-9]", status)
        or not re.fullmatch(_VALUE, reason)
    ):
        raise Refusal(502, "the server does not answer in HTTP/1")
    return Response(version, int(status), reason, fields)


def _lines(data: bytes, status: int) -> tuple[str, Fields]:
    first, *lines = data.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    if len(lines) > _FIELDS_LIMIT:
        raise Refusal(431 if status == 400 else 502, f"a head has more than {_FIELDS_LIMIT} fields")
    return first, tuple(_field(line, status) for line in lines)


def _field(line: str, status: int) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not re.fullmatch(_TOKEN, name) or not re.fullmatch(_VALUE, value):
        raise Refusal(status, "a header field is malformed")
    return name, value.strip(" \t")


def _absolute(target: str) -> tuple[str, int, str]:
    scheme, separator, rest = target.partition("://")
    if not separator or "/" in scheme:
        raise Refusal(400, "this is a proxy: it takes CONNECT host:port, or a whole http:// address")
    if scheme.lower() != "http":
        raise Refusal(501, f"{scheme[:20]}:// is not spoken here; for https use CONNECT")
    end = next((at for at, sign in enumerate(rest) if sign in "/?"), len(rest))
    host, port = _authority(rest[:end], 80)
    path = rest[end:].partition("#")[0]
    return host, port, path if path.startswith("/") else f"/{path}"


def _authority(text: str, default: int | None) -> tuple[str, int]:
    try:
        if not re.fullmatch(_AUTHORITY, text):
            raise ValueError("a letter that has no place there")
        host, port = place_of(text.removesuffix(":") if default is not None else text)
    except ValueError as error:
        raise Refusal(400, f"{text[:100]!r} is no host and port: {error}") from None
    if port is None and default is None:
        raise Refusal(400, "CONNECT needs a port")
    return host, port or default or 0


def _check_host(fields: Fields, host: str, port: int) -> None:
    """A Host field that names another host would have a server behind many names answer as one that was never allowed."""
    for text in _all(fields, "host"):
        if _authority(text, 80) != (host, port):
            raise Refusal(400, f"the Host field names {text[:100]}, the address {place(host, port)}")
    if len(_all(fields, "host")) > 1:
        raise Refusal(400, "there are two Host fields")


def _framing(fields: Fields, status: int) -> int | Literal["chunked"] | None:
    """None: nothing is said. Raises Refusal for what is said twice, or in a way that others may read differently."""
    coding, length = _all(fields, "transfer-encoding"), _all(fields, "content-length")
    if coding and length:
        raise Refusal(status, "there are both Content-Length and Transfer-Encoding")
    if coding:
        if [value.lower() for value in coding] != ["chunked"]:
            raise Refusal(501 if status == 400 else status, "of the transfer codings only chunked is known")
        return "chunked"
    if len(set(length)) > 1 or not all(re.fullmatch(r"[0-9]{1,18}", value, re.ASCII) for value in length):
        raise Refusal(status, "Content-Length is no number")
    return int(length[0]) if length else None


def _frame(framing: Framing | None) -> list[str]:
    match framing:
        case "chunked":
            return ["Transfer-Encoding: chunked"]
        case int():
            return [f"Content-Length: {framing}"]
    return []


def _kept(fields: Fields, also: set[str]) -> list[str]:
    """The fields that travel on, as lines: not those of this connection, nor what is said to or by a proxy."""
    left = _OURS | also | _tokens(fields, "connection", "proxy-connection")
    return [
        f"{name}: {value}"
        for name, value in fields
        if name.lower() not in left and not name.lower().startswith("proxy-")
    ]


def _all(fields: Fields, name: str) -> list[str]:
    return [value for key, value in fields if key.lower() == name]


def _tokens(fields: Fields, *names: str) -> set[str]:
    return {token.strip().lower() for name in names for value in _all(fields, name) for token in value.split(",")}


def _head(lines: Iterable[str]) -> bytes:
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
