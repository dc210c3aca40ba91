"""Serves over HTTP: the socket, the guard before the endpoint, and an orderly end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handwork.errors import ConfigError
from handwork.server.desk import Desk
from handwork.server.guard import PATH, Guard, is_loopback, names_of
from handwork.server.house import House
from handwork.server.presence import Presence
from handwork.server.protocol import build_server
from handwork.server.punctual import punctual
from handwork.server.token import token_of

_LARGEST = 16 * 1024 * 1024
"""Bytes of one request."""
_SESSIONS = 1000
"""Sessions of the transport. Clients that crash, or never say good-bye, leave theirs for half an hour: more of them than there is room for
at the desk must keep nobody out."""
_CONNECTIONS = 256
_AT_ONCE = 64
"""Connections that may come in one turn of the loop, before any of them can be turned away."""
_GRACE = 1
"""Seconds that open streams have at the end."""
_IN_THE_CLEAR = (
    "warning: Clients of other machines can reach this, and nothing on the way is encrypted: the token can be read by whoever "
    "carries the traffic. Put a TLS proxy or a tunnel before it."
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen, and the file with the token that clients must know."""

    host: str
    port: int
    token_file: Path


async def serve_http(house: House, address: Address, stop: asyncio.Event) -> None:
    """Serve until `stop`. Raises ConfigError for an address or token file that cannot be used."""
    token, made = token_of(address.token_file)
    with _listening(address) as listener:
        port = listener.getsockname()[1]
        desk = Desk(house)
        manager = _manager(desk)
        guard = Guard(Presence(manager.handle_request, desk), token=token, names=names_of(address.host), port=port)
        if not is_loopback(address.host):
            house.say(_IN_THE_CLEAR)
        server = _server(guard)
        async with manager.run():
            serving = asyncio.create_task(server.serve(sockets=[listener]), name="http")
            watching = asyncio.create_task(desk.watch(), name="idle clients")
            house.say(_where(address, port, made=made))
            await _until(stop, serving)
            watching.cancel()
            await desk.close()
            server.should_exit = True
            await serving


def _where(address: Address, port: int, *, made: bool) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    file = f"made just now in {address.token_file}" if made else f"in {address.token_file}"
    return f"Serving MCP at http://{host}:{port}{PATH} (bearer token {file})"


async def _until(stop: asyncio.Event, serving: asyncio.Task[None]) -> None:
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({stopped, serving}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()


@contextmanager
def _listening(address: Address) -> Iterator[socket.socket]:
    try:
        family, _, _, _, where = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(where[:2], family=family)
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            f"Cannot listen on {address.host}, port {address.port}: {said}",
            hint="--port 0 takes a free port, and --host names another address of this machine",
        ) from error
    with listener:
        yield listener


def _manager(desk: Desk) -> Any:
    """The SDK's endpoint. Host and Origin are the guard's business, which knows more spellings than the SDK's check."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    return StreamableHTTPSessionManager(
        app=build_server(desk), max_request_body_size=_LARGEST, max_sessions=_SESSIONS, security_settings=None
    )


def _server(app: Callable[..., Any]) -> Any:
    """uvicorn, quiet: no access log, no words about itself; what the signals mean is ours."""
    import uvicorn

    class Quiet(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Quiet(
        uvicorn.Config(
            app,
            http=punctual(_CONNECTIONS),
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS,
            backlog=_AT_ONCE,
            timeout_graceful_shutdown=_GRACE,
        )
    )
