"""The way back from a login in the browser: a page on this machine that takes the code, or the address as a person pastes it."""

from __future__ import annotations

import asyncio
import contextlib
import html
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from handwork.errors import MCPUnavailable
from handwork.mcp.failing import shown

_PATH = "/callback"
_HEAD = 1 << 14
_SILENCE = 10.0
_HEADERS = (
    "Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n"
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a good answer holds: the state that we sent, and who it says to be from (`iss`, RFC 9207)."""

    server: str
    state: str
    issuer: str
    names_itself: bool

    def code(self, query: Mapping[str, str]) -> str:
        """The code of an answer; raises MCPUnavailable for a refusal. Only asked for answers that are `ours`."""
        issuer = query.get("iss")
        if (issuer is None and self.names_itself) or (issuer is not None and issuer != self.issuer):
            raise MCPUnavailable(
                f"The answer to the login at the MCP server {self.server} is not from where you were sent "
                f"({shown(issuer or 'it does not say from where')}), so it was not used",
                hint="begin anew; if it happens again, tell who runs the server",
            )
        if query.get("error") or not query.get("code"):
            said = ": ".join(shown(query[key]) for key in ("error", "error_description") if query.get(key))
            raise MCPUnavailable(
                f"The login at the MCP server {self.server} was refused: {said or 'there was no code'}"
            )
        return query["code"]

    def ours(self, query: Mapping[str, str]) -> bool:
        """Whether it answers what we asked."""
        return secrets.compare_digest(query.get("state", "").encode(errors="replace"), self.state.encode())


class Landing:
    """The page on this machine. `answer` is the query of the first answer that is ours."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.expected: Expected | None = None
        self.answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._visits: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        """Where the browser is sent back to."""
        return f"http://127.0.0.1:{self.port}{_PATH}"

    def take(self, url: str) -> bool:
        """An address that a person pasted; whether it is the answer."""
        return self._take(_query(url.strip().strip("\"'<>")))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One visit of the page."""
        self._visits.add(writer)
        try:
            async with asyncio.timeout(_SILENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._visited(head.decode("latin-1").split("\r\n"))
                writer.write(_page(status, text))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            self._visits.discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def leave(self) -> None:
        """Hang up on browsers that connected and asked nothing, as some do in advance."""
        for writer in self._visits:
            writer.close()

    def _visited(self, lines: list[str]) -> tuple[str, str]:
        method, _, rest = lines[0].partition(" ")
        target = rest.partition(" ")[0]
        hosts = [line.partition(":")[2].strip().lower() for line in lines if line.lower().startswith("host:")]
        if hosts not in ([f"127.0.0.1:{self.port}"], [f"localhost:{self.port}"]):
            return "421 Misdirected Request", "This page is for this machine only."
        if method != "GET" or urlsplit(target).path != _PATH:
            return "404 Not Found", "There is nothing here."
        if not self._take(_query(target)):
            return "400 Bad Request", "This is not the answer that Handwork waits for; it was not used."
        query = self.answer.result()
        if query.get("error"):
            return "200 OK", f"The login was refused ({shown(query['error'])}). You can close this page."
        return "200 OK", "Handwork has what it needs. You can close this page and go back to it."

    def _take(self, query: dict[str, str]) -> bool:
        if self.expected is None or not self.expected.ours(query):
            return False
        if not self.answer.done():
            self.answer.set_result(query)
        return self.answer.result() == query


@asynccontextmanager
async def landing(port: int, server: str) -> AsyncIterator[Landing]:
    """The page at work at a port of this machine (0: any); raises MCPUnavailable if that one is taken."""
    page = Landing(port)
    try:
        listening = await asyncio.start_server(page.serve, "127.0.0.1", port, limit=_HEAD)
    except OSError as error:
        raise MCPUnavailable(
            f"The login at the MCP server {server} needs the port {port} of this machine: {error.strerror}",
            hint="end the program that has it, or change redirect_port in the server's oauth settings",
            lasting=True,
        ) from None
    page.port = listening.sockets[0].getsockname()[1]
    try:
        yield page
    finally:
        listening.close()
        page.leave()
        await listening.wait_closed()
        if not page.answer.done():
            page.answer.cancel()


def _query(url: str) -> dict[str, str]:
    """The query of an address; one with a name twice is none."""
    try:
        pairs = parse_qsl(urlsplit(url).query or "", max_num_fields=50)
    except ValueError:
        return {}
    return dict(pairs) if len({name for name, _ in pairs}) == len(pairs) else {}


def _page(status: str, text: str) -> bytes:
    body = f"<!doctype html><meta charset=utf-8><title>Handwork</title><p>{html.escape(text)}\n".encode()
    return f"HTTP/1.1 {status}\r\n{_HEADERS}Content-Length: {len(body)}\r\n\r\n".encode() + body
