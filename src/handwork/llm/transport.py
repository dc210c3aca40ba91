"""HTTP for the model wires: time limits, proxies, certificates, and every failure as a typed error."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from handwork.config.user_proxy import proxy_for
from handwork.errors import (
    BrokenStreamError,
    ConfigError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    ModelTimeoutError,
    UntrustedServerError,
)
from handwork.llm.failures import Source
from handwork.llm.sessions import leave, session_for

_LARGE = 1 << 20
"""aiohttp warns of larger bodies as bytes; as a file object they go out piece by piece."""
_ERROR_BODY = 1 << 16
_ERRNO = re.compile(r"\[Errno (\d+)\]")
_SETTLE = 0.1
"""Seconds that the last bytes after the answer may take, so that its connection can be used again."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds: until connected, of silence, of a whole request."""

    connect: float = 20.0
    idle: float = 120.0
    total: float = 600.0


class Answer:
    """An HTTP answer whose head has come."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self.status: int = response.status

    @property
    def headers(self) -> dict[str, str]:
        """Header names in lower case."""
        return {name.lower(): value for name, value in self._response.headers.items()}

    async def read(self) -> bytes:
        """What the network brings next, all that is there; empty at the end."""
        read: bytes = await self._response.content.readany()
        return read

    async def error_body(self) -> bytes:
        """The body, no more than its first 64 KB; what came of it, if it breaks off."""
        pieces: list[bytes] = []
        try:
            while sum(map(len, pieces)) < _ERROR_BODY and (read := await self.read()):
                pieces.append(read)
        except _failures():
            pass
        return b"".join(pieces)[:_ERROR_BODY]

    async def settle(self) -> None:
        """Read the end of an answer of which all that matters has come."""
        if self._response.content.at_eof():
            return
        try:
            async with asyncio.timeout(_SETTLE):
                while await self.read():
                    pass
        except _failures():
            self._response.close()


class Transport:
    """Posts to one address.

    Args:
        source: names and the key, for messages.
        headers: sent with every request.
        environ: where HTTP_PROXY, HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE are looked up; loopback is never proxied.

    Raises ConfigError for a proxy that is no address and for an SSL_CERT_FILE that holds no certificates.
    """

    def __init__(
        self, url: str, headers: Mapping[str, str], source: Source, limits: TimeLimits, environ: Mapping[str, str]
    ) -> None:
        self._source, self._limits = source, limits
        self._url = url
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **headers}
        self._proxy = proxy_for(url, environ)
        ca = environ.get("SSL_CERT_FILE") if url.startswith("https:") else None
        self._tls = trusting(ca) if ca else None
        self._ready: dict[str, Any] | None = None

    @asynccontextmanager
    async def post(self, body: bytes, remaining: float | None = None) -> AsyncIterator[Answer]:
        """Send a body; leaving the block early closes the connection.

        Args:
            remaining: seconds that the run has left; the request ends with it.

        Raises:
            ModelConnectionError, ModelTimeoutError: also for what fails while the answer is read in the block.
        """
        limit = self._limits.total if remaining is None else max(0.001, min(self._limits.total, remaining))
        try:
            session = await session_for(self)
            options = self._options(limit)
            data = body if len(body) < _LARGE else io.BytesIO(body)
            response = await session.post(self._url, data=data, **options)
            try:
                yield Answer(response)
            finally:
                response.release()  # an answer that was not read to its end takes its connection with it
        except _failures() as error:
            raise self._typed(error, limit) from None

    async def aclose(self) -> None:
        """Give up the loop's session; a later request takes it again."""
        await leave(self)

    def _options(self, limit: float) -> dict[str, Any]:
        if self._ready is None:
            self._ready = self._prepare()
        if limit == self._limits.total:
            return self._ready
        return self._ready | {"timeout": self._timeout(limit)}

    def _prepare(self) -> dict[str, Any]:
        from multidict import CIMultiDict

        options: dict[str, Any] = {
            "headers": CIMultiDict(self._headers),
            "timeout": self._timeout(self._limits.total),
            "allow_redirects": False,  # a redirect would carry the key to whom nobody named
            "proxy": self._proxy,
        }
        if self._tls is not None:
            options["ssl"] = self._tls
        return options

    def _timeout(self, total: float) -> Any:
        import aiohttp

        return aiohttp.ClientTimeout(total=total, sock_connect=self._limits.connect, sock_read=self._limits.idle)

    def _typed(self, error: Exception, limit: float) -> ModelError:
        import aiohttp

        where = urlsplit(self._url).netloc.rpartition("@")[2]
        failed = self._source.error
        if isinstance(error, aiohttp.SocketTimeoutError):
            return failed(ModelTimeoutError, f"nothing came from {where} for {self._limits.idle:g} s")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return failed(ModelTimeoutError, f"no connection to {where} within {self._limits.connect:g} s")
        if isinstance(error, TimeoutError):
            return failed(ModelTimeoutError, f"the answer from {where} was not complete after {limit:g} s")
        if isinstance(error, aiohttp.ClientPayloadError):
            return failed(BrokenStreamError, f"the answer from {where} broke off: {error}")
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return failed(
                UntrustedServerError, f"the certificate of {where} is not trusted: {_plain(error.certificate_error)}"
            )
        if isinstance(error, aiohttp.InvalidURL):
            return failed(ModelNotFoundError, f"{where} is no address that a request can be sent to")
        hint = ""
        if isinstance(error, aiohttp.ClientConnectorSSLError):
            hint = "there seems to be no https at that address: try http, or check the port"
        elif isinstance(error, aiohttp.ClientProxyConnectionError | aiohttp.ClientHttpProxyError):
            hint = f"the proxy {urlsplit(self._proxy or '').hostname} failed: check HTTPS_PROXY and NO_PROXY"
        text = _plain(error)
        return failed(ModelConnectionError, f"the connection to {where} failed: {text}", hint)


def _plain(error: BaseException) -> str:
    """What went wrong with a connection, in words rather than in those of the network library."""
    import ssl

    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorError):
        return _plain(error.os_error)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed it without an answer"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered {error.status} {error.message}".rstrip()
    if isinstance(error, aiohttp.ClientResponseError):
        return "what came is no HTTP answer"
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return f"no encrypted connection: {(error.reason or str(error)).replace('_', ' ').lower()}"
    if isinstance(error, socket.gaierror):
        return f"name not resolved ({error.strerror})"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    if isinstance(error, OSError) and (numbers := dict.fromkeys(_ERRNO.findall(str(error)))):
        return ", ".join(os.strerror(int(number)).lower() for number in numbers)  # several addresses, several reasons
    if isinstance(error, ConnectionResetError):  # asyncio's own, which has no number
        return os.strerror(errno.ECONNRESET).lower()
    return str(error) or type(error).__name__


def _failures() -> tuple[type[Exception], ...]:
    import aiohttp

    return (aiohttp.ClientError, OSError, TimeoutError)


def trusting(ca: str | None) -> Any:
    """The TLS context that trusts the certificates in a file, or the system's. Raises ConfigError for a file that holds none."""
    import ssl

    try:
        return ssl.create_default_context(cafile=ca or None)
    except OSError as error:  # SSLError is one
        why = error.strerror or str(error)
        raise ConfigError(
            f"SSL_CERT_FILE names {ca}, which holds no certificates that can be read: {why}",
            hint="name a PEM file with your CA's certificate, or unset the variable",
        ) from None
