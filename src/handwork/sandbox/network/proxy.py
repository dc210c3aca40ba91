"""The proxy of a sandbox: takes connections from a listening socket inside, and serves each until it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from handwork.sandbox.network.gate import PATIENCE, Gate
from handwork.sandbox.network.resolve import Resolve, resolve
from handwork.sandbox.network.stream import Stream, accepted
from handwork.sandbox.network.visitor import Visitor
from handwork.sandbox.network.way import Ways
from handwork.schema import AllowHost, Notify

PORT = 3128
"""Where it is found on the sandbox's own loopback."""
_CONNECTIONS = 256
_DIRECT = "localhost,127.0.0.1,::1"

Visit: TypeAlias = Callable[[Stream], Awaitable[None]]
"""What serves one connection."""


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
        local: places of this machine that are found inside on the same port, without a proxy: for programs that know none, and
            since what is called localhost is reached without one.
        resolve: the addresses of a name.
        environ: where the user's own proxy is looked for; None is ours.
        patience: seconds that a connection waits for `allow_host`.
    """

    def __init__(
        self,
        allow_host: AllowHost,
        notify: Notify,
        *,
        local: Sequence[tuple[str, int]] = (),
        resolve: Resolve = resolve,
        environ: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._gate = Gate(allow_host, notify, patience)
        self._ways = Ways(self._gate, resolve, os.environ if environ is None else environ)
        self._notify = notify
        self.local = tuple(local)
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_CONNECTIONS)

    def serve(self, listener: socket.socket, local: tuple[str, int] | None = None) -> None:
        """Take connections from here (TCP or Unix) until `close`: to the proxy, or all to one `local` place. It becomes ours."""

        async def visit(client: Stream) -> None:
            visitor = Visitor(client, self._gate, self._ways)
            await (visitor.serve() if local is None else visitor.join(*local))

        listener.setblocking(False)
        self._keep(asyncio.create_task(self._listen(listener, visit), name="sandbox network"))

    def take_refused(self) -> list[str]:
        """Sentences for the model about what was refused since the last time."""
        return self._gate.take()

    async def close(self) -> None:
        """End all connections and listen no more; nothing is left. It may serve again."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, listener: socket.socket, visit: Visit) -> None:
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
                task = asyncio.create_task(self._visit(sock, visit), name="sandbox network connection")
                task.add_done_callback(partial(self._leave, sock))
                self._keep(task)

    async def _visit(self, sock: socket.socket, visit: Visit) -> None:
        await visit(await accepted(sock))

    def _leave(self, sock: socket.socket, _task: asyncio.Task[None]) -> None:
        sock.close()  # a visit that was cancelled before it began has closed nothing
        self._room.release()

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._notify("warning", f"The sandbox's network failed: {type(error).__name__}: {error}")
