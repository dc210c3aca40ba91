"""The proxy of a sandbox: takes connections from a listening socket inside, and serves each until it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping
from functools import partial

from handwork.sandbox.network.gate import PATIENCE, Gate
from handwork.sandbox.network.resolve import Resolve, resolve
from handwork.sandbox.network.stream import accepted
from handwork.sandbox.network.visitor import Visitor
from handwork.sandbox.network.way import Ways
from handwork.schema import AllowHost, Notify

PORT = 3128
"""Where it is found on the sandbox's own loopback."""
_CONNECTIONS = 256
_DIRECT = "localhost,127.0.0.1,::1"


def environment(port: int = PORT) -> dict[str, str]:
    """What programs look at to find a proxy; the sandbox's own loopback is reached without."""
    address = f"http://127.0.0.1:{port}"
    values = {"http_proxy": address, "https_proxy": address, "all_proxy": address, "no_proxy": _DIRECT}
    return {**values, **{name.upper(): value for name, value in values.items()}, "NODE_USE_ENV_PROXY": "1"}


class Proxy:
    """Serves one sandbox.

    Args:
        allow_host: asked about every place (and about an address that is not public, to which a name leads).
        notify: hears of each place that was refused, once.
        resolve: the addresses of a name.
        environ: where the user's own proxy is looked for; None is ours.
        patience: seconds that a connection waits for `allow_host`.
    """

    def __init__(
        self,
        allow_host: AllowHost,
        notify: Notify,
        *,
        resolve: Resolve = resolve,
        environ: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._gate = Gate(allow_host, notify, patience)
        self._ways = Ways(self._gate, resolve, os.environ if environ is None else environ)
        self._notify = notify
        self._listening: asyncio.Task[None] | None = None
        self._visits: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_CONNECTIONS)

    async def serve(self, listener: socket.socket) -> None:
        """Take connections from here (TCP or Unix) from now on, and no longer from where they came before; it becomes ours."""
        await self.close()
        listener.setblocking(False)
        self._listening = asyncio.create_task(self._listen(listener), name="sandbox network")

    def take_refused(self) -> list[str]:
        """Sentences for the model about what was refused since the last time."""
        return self._gate.take()

    async def close(self) -> None:
        """End all connections; nothing is left. It may serve again."""
        tasks = [*self._visits, *([self._listening] if self._listening else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listening = None

    async def _listen(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.closing(listener):
            while True:
                await self._room.acquire()  # more of them wait in the kernel's queue
                try:
                    sock, _ = await loop.sock_accept(listener)
                except OSError:
                    self._room.release()
                    await asyncio.sleep(0.1)  # no descriptor is free, or the connection is gone already
                    continue
                except BaseException:
                    self._room.release()
                    raise
                visit = asyncio.create_task(self._visit(sock), name="sandbox network connection")
                self._visits.add(visit)
                visit.add_done_callback(partial(self._ended, sock))

    async def _visit(self, sock: socket.socket) -> None:
        client = await accepted(sock)
        await Visitor(client, self._gate, self._ways).serve()

    def _ended(self, sock: socket.socket, visit: asyncio.Task[None]) -> None:
        sock.close()  # a visit that was cancelled before it began has closed nothing
        self._visits.discard(visit)
        self._room.release()
        if not visit.cancelled() and (error := visit.exception()) is not None:
            self._notify("warning", f"The sandbox's network failed at a connection: {type(error).__name__}: {error}")
