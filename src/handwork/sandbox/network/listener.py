"""The listening sockets that a sandbox's supervisor makes on the loopback inside and hands out to us."""

from __future__ import annotations

import os
import socket

from handwork.config.allow_list import place
from handwork.errors import SandboxError
from handwork.sandbox.connection import Connection
from handwork.sandbox.inside import wire
from handwork.sandbox.network.proxy import PORT, Proxy
from handwork.schema import Notify


async def open_network(proxy: Proxy, connection: Connection, notify: Notify) -> None:
    """Have a proxy serve a sandbox whose supervisor has just started, and what served an earlier one end. Raises SandboxError."""
    await proxy.close()
    proxy.serve(await listener_inside(connection))
    for host, port in proxy.local:
        try:
            proxy.serve(await listener_inside(connection, port), (host, port))
        except SandboxError as error:  # a port below 1024, or our own
            notify(
                "warning",
                f"{place(host, port)} is not found at its own port inside the sandbox: {error.what}. "
                "Programs reach it through the proxy, if they are told to (curl --noproxy '').",
            )


async def listener_inside(connection: Connection, port: int = PORT) -> socket.socket:
    """A socket that listens inside the sandbox and is accepted from out here. Raises SandboxError."""
    try:
        _nothing, fds = await connection.request(op="listen", port=port)
    except OSError as error:
        raise SandboxError(f"port {port} cannot be opened there ({error.strerror or error})") from error
    try:
        if len(fds) != 1:
            raise SandboxError("The sandbox's network cannot be opened: no socket came out of it")
        return _checked(fds[0])
    finally:
        wire.close_all(fds)


def _checked(fd: int) -> socket.socket:
    """A socket of our own for that descriptor. What comes from inside is not trusted to be one that listens."""
    ours = os.dup(fd)
    try:
        found = socket.socket(fileno=ours)
    except OSError as error:
        os.close(ours)
        raise SandboxError(f"What came out of the sandbox is no socket: {error.strerror or error}") from error
    listens = found.family == socket.AF_INET and found.type == socket.SOCK_STREAM
    if not listens or not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        found.close()
        raise SandboxError("What came out of the sandbox is no socket that listens")
    return found
