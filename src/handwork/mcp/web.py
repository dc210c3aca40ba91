"""HTTP clients as MCP needs them: the user's proxy and certificates, time limits, nothing else from the environment."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from handwork.config.user_proxy import proxy_for
from handwork.errors import ConfigError, MCPUnavailable

CONNECT = 30.0
"""Seconds until connected, and for each piece that is sent. How long an answer may take is the caller's to say."""


def way_to(url: str, environ: Mapping[str, str]) -> Any:
    """What carries requests to this address (an httpx2.AsyncHTTPTransport); raises MCPUnavailable (lasting) for a proxy that is no
    address or certificates that cannot be read."""
    import httpx2

    try:
        proxy = proxy_for(url, environ)
    except ConfigError as error:
        raise MCPUnavailable(error.what, hint=error.hint, lasting=True) from None
    return httpx2.AsyncHTTPTransport(
        verify=_trust(url, environ.get("SSL_CERT_FILE")),
        trust_env=False,
        proxy=_proxy(proxy, environ) if proxy else None,
        socket_options=_keeps_alive(),
    )


def client_over(transport: Any, headers: Mapping[str, str] | None = None, silence: float | None = None) -> Any:
    """An httpx2.AsyncClient over what carries its requests. `silence`: seconds that the other side may say nothing; None: for ever."""
    from importlib.metadata import version

    import httpx2

    named = {"user-agent": f"handwork/{version('handwork')}", "accept-encoding": "identity", **(headers or {})}
    limits = httpx2.Timeout(CONNECT, read=silence, pool=None)
    return httpx2.AsyncClient(transport=transport, headers=named, timeout=limits, trust_env=False)


def _proxy(url: str, environ: Mapping[str, str]) -> Any:
    import httpx2

    tls = _trust(url, environ.get("SSL_CERT_FILE")) if url.startswith("https:") else None
    return httpx2.Proxy(url, ssl_context=tls)


def _trust(url: str, ca: str | None) -> Any:
    """Certificates cost 20 ms to read, so that plain HTTP goes without."""
    import ssl

    if not url.lower().startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return ssl.create_default_context(cafile=ca or None)
    except OSError as error:  # SSLError is one
        raise MCPUnavailable(
            f"SSL_CERT_FILE names {ca}, which holds no certificates that can be read: {error.strerror or error}",
            hint="name a PEM file with your CA's certificate, or unset the variable",
            lasting=True,
        ) from None


def _keeps_alive() -> list[tuple[int, int, int]]:
    """A stream may be silent for hours; that the other side is gone is found by the system's own questions."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options
