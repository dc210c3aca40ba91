"""What went wrong on the way to an MCP server, in words: connections that fail, and answers that are none."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Mapping

from handwork.errors import MCPLoginNeeded, MCPUnavailable
from handwork.mcp.address import Address, shown_url
from handwork.mcp.own_command import own_command
from handwork.schema.visible import without_hidden

_ERRNO = re.compile(r"\[Errno (-?\d+)\]")
_LONGEST = 200
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")


def unreachable(address: Address, error: BaseException, where: str = "") -> MCPUnavailable:
    """A request that found no server, or lost it before the answer; `error` is the HTTP library's. `where` names another place than
    the server itself."""
    import httpx2

    cause = _root(error)
    lost = where or f"the MCP server {address.name}"
    where = where or f"The MCP server {address.name} at {address.shown}"
    refusal = _untrusted(cause)
    if refusal:
        return MCPUnavailable(
            f"{where} shows a certificate that is not trusted: {refusal}",
            hint="check its address, or name the file with your CA's certificate in SSL_CERT_FILE",
            lasting=True,
        )
    if isinstance(error, httpx2.ProxyError):
        return MCPUnavailable(
            f"{where} cannot be reached: the proxy failed ({_plain(cause)})", hint="check HTTPS_PROXY and NO_PROXY"
        )
    if isinstance(error, httpx2.ConnectTimeout):
        return MCPUnavailable(
            f"{where} cannot be reached: no connection in time", hint="check the network and the proxy"
        )
    if isinstance(error, httpx2.ConnectError):
        return MCPUnavailable(
            f"{where} cannot be reached: {_plain(cause)}",
            hint="check that it runs, its address, the network and the proxy",
        )
    return MCPUnavailable(f"The connection to {lost} was lost: {_plain(cause)}")


def refused(address: Address, status: int, headers: Mapping[str, str], body: bytes) -> MCPUnavailable:
    """An HTTP status that says no."""
    said = _said(headers, body)
    what = f"The MCP server {address.name} at {address.shown} answered {_status(status)}{said}"
    if status == 403:
        if parameter(headers, "error") == "insufficient_scope":
            scope = ("--scope", found) if (found := _scope(headers)) else ()
            return MCPLoginNeeded(
                what, hint=f"it wants more rights: {own_command('login', address.name, *scope)}", lasting=True
            )
        return MCPUnavailable(
            what, hint="who you are there may not do this: check the entry's headers or login", lasting=True
        )
    if status in (404, 410):
        return MCPUnavailable(
            what,
            hint="check the path of its url: servers mostly answer at /mcp, those of type sse at /sse",
            lasting=True,
        )
    if status == 405:
        return MCPUnavailable(
            what, hint='it takes no messages there: check the path, or set its type to "sse"', lasting=True
        )
    if status == 429 or status >= 500 or status == 408:
        why = "it had too many requests" if status == 429 else "the server or what stands before it failed"
        seconds = _wait(headers)
        when = f"in {seconds:.0f} s" if seconds else "later"
        return MCPUnavailable(what, hint=f"{why}: try again {when}", retry_after=seconds)
    return MCPUnavailable(what, hint="check its url, type and headers", lasting=True)


def unknown(address: Address, headers: Mapping[str, str]) -> MCPUnavailable:
    """401: it wants to know who we are."""
    where = f"The MCP server {address.name} at {address.shown}"
    if address.own_login:
        return MCPLoginNeeded(
            f"{where} does not take the credentials that are configured for it",
            hint=f"check the entry's headers; without an Authorization there, `{own_command('login', address.name)}` can log in",
            lasting=True,
        )
    why = " again" if parameter(headers, "error") == "invalid_token" else ""
    return MCPLoginNeeded(f"{where} wants you to log in{why}", hint=own_command("login", address.name), lasting=True)


def elsewhere(address: Address, target: str) -> MCPUnavailable:
    """A redirect away from the configured origin, or one that would lose the message."""
    return MCPUnavailable(
        f"The MCP server {address.name} at {address.shown} redirects to {shown_url(target)}, which was not followed",
        hint="if that is the server you mean, make it the entry's url",
        lasting=True,
    )


def no_messages(address: Address, kind: str) -> MCPUnavailable:
    """An answer that is no message of the protocol."""
    page = (
        "a web page" if "html" in kind else f"{_one_line(kind)} in place of messages" if kind else "no kind of content"
    )
    return MCPUnavailable(
        f"The MCP server {address.name} at {address.shown} answered with {page}",
        hint="check its url: servers mostly answer at /mcp, those of type sse at /sse",
        lasting=True,
    )


def compressed(address: Address, coding: str) -> MCPUnavailable:
    """An answer in a coding that was not asked for: what it grows to is unknown."""
    return MCPUnavailable(
        f"The MCP server {address.name} answered with compressed content ({_one_line(coding)}), which was not asked for",
        hint="switch the compression off in what stands before the server",
        lasting=True,
    )


def too_large(address: Address, limit: int) -> MCPUnavailable:
    """A message that no memory should hold."""
    return MCPUnavailable(
        f"A message of the MCP server {address.name} was larger than {limit >> 20} MB, so it was not read",
        hint="ask it for less",
    )


def too_many(address: Address, most: int) -> MCPUnavailable:
    """A message that would take far more memory than it is long."""
    return MCPUnavailable(
        f"A message of the MCP server {address.name} held more than {most:,} values, so it was not read",
        hint="ask it for less",
    )


def parameter(headers: Mapping[str, str], name: str) -> str:
    """A parameter of WWW-Authenticate, '' if it is not there."""
    found = re.search(rf'(?i)\b{name}\s*=\s*(?:"([^"]*)"|([^\s,]+))', headers.get("www-authenticate", ""))
    return (found[1] or found[2] or "") if found else ""


def _status(status: int) -> str:
    from http import HTTPStatus

    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _said(headers: Mapping[str, str], body: bytes) -> str:
    """What the server says itself, if it is short and no page."""
    kind = headers.get("content-type", "").lower()
    text = ""
    if "json" in kind:
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            data = None
        for key in ("error_description", "message", "detail", "error", "title"):
            value = data.get(key) if isinstance(data, dict) else None
            value = value.get("message") if isinstance(value, dict) else value
            text = text or (value if isinstance(value, str) else "")
    elif kind.startswith("text/plain"):
        text = body.decode(errors="replace")
    text = _one_line(text)
    return f": {text}" if text else ""


def _one_line(text: str) -> str:
    text = _CONTROLS.sub(" ", without_hidden(text[: 4 * _LONGEST])).strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _wait(headers: Mapping[str, str]) -> float:
    """The seconds of Retry-After, which are said as such or as a date (RFC 9110); 0 where it says nothing."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    from email.utils import parsedate_to_datetime

    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0) if text else 0.0
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _scope(headers: Mapping[str, str]) -> str:
    """The scope that is asked for; only as far as it can be typed."""
    scope = parameter(headers, "scope")
    return scope if re.fullmatch(r"[\w.:/ +*-]{1,200}", scope, re.ASCII) else ""


def _root(error: BaseException) -> BaseException:
    """The error at the bottom: the HTTP library wraps that of its own transport, which wraps the system's."""
    for _ in range(10):
        inner = error.__cause__ or error.__context__
        if inner is None:
            break
        error = inner
    return error


def _untrusted(error: BaseException) -> str:
    import ssl

    return error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else ""


def _plain(error: BaseException) -> str:
    import ssl

    if isinstance(error, ssl.SSLError):
        return f"no encrypted connection ({(error.reason or str(error)).replace('_', ' ').lower()})"
    if isinstance(error, socket.gaierror):
        return f"its name is not resolved ({error.strerror})"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno).lower()
    if numbers := dict.fromkeys(_ERRNO.findall(str(error))):
        return ", ".join(os.strerror(int(number)).lower() for number in numbers if int(number) > 0) or str(error)
    return _one_line(str(error)) or type(error).__name__
