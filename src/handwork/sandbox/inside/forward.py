"""The inner end of the network on request: a listening socket on the sandbox's own loopback, which is served outside."""

from __future__ import annotations

from _socket import AF_INET, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket

_QUEUE = 128


def listening(port: int) -> int:
    """A descriptor that listens on that port. A socket belongs to the network it was made in, whoever holds it: connections to
    it come from in here alone, and nothing in here has to carry them."""
    sock = socket(AF_INET, SOCK_STREAM)
    try:
        sock.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen(_QUEUE)
        return sock.detach()
    finally:
        sock.close()
