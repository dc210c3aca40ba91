"""A proxy on a loopback port, servers to reach through it, and names for them that only the test's resolver knows."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from handwork.config.allow_list import allowed_host, is_listed
from handwork.sandbox.network.addresses import not_listed
from handwork.sandbox.network.proxy import Proxy
from handwork.schema import AllowHost, Decision, Verdict

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Net:
    """`port` is the proxy's; `names` what the resolver knows, `asked` which names it was asked for; `notices` what people hear."""

    def __init__(self) -> None:
        self.names: dict[str, list[str]] = {}
        self.listed: list[str] = ["127.0.0.1"]
        self.asked: list[str] = []
        self.notices: list[str] = []
        self.environ: dict[str, str] = {}
        self.patience = 10.0
        self.decide: AllowHost = self._by_list
        self.port = 0
        self.proxy: Proxy | None = None
        self.reached = 0
        self._servers: list[asyncio.Server] = []
        self._visits: set[asyncio.Task[None]] = set()

    def allow(self, *entries: str) -> None:
        self.listed += map(allowed_host, entries)

    async def _by_list(self, host: str, port: int, name: str) -> Decision:
        if is_listed(self.listed, host, port):
            return Decision(verdict=Verdict.ALLOW)
        return Decision(verdict=Verdict.DENY, why=not_listed(host, name))

    async def resolve(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        if name not in self.names:
            raise OSError(-2, "Name or service not known")
        return self.names[name]

    async def start(self) -> Net:
        self.proxy = Proxy(
            lambda host, port, name: self.decide(host, port, name),
            lambda level, text: self.notices.append(text),
            resolve=self.resolve,
            environ=self.environ,
            patience=self.patience,
        )
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.proxy.serve(listener)
        return self

    async def server(self, serve: Serve) -> int:
        """A server on the loopback; returns its port. `reached` counts the connections to it."""

        async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.reached += 1
            task = asyncio.current_task()
            assert task is not None
            self._visits.add(task)
            try:
                await serve(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.transport.abort()
                self._visits.discard(task)

        server = await asyncio.start_server(visit, "127.0.0.1", 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def say(self, data: bytes, *, end: bool = False) -> bytes:
        """What the proxy answers until it closes."""
        reader, writer = await self.open()
        try:
            writer.write(data)
            if end:
                writer.write_eof()
            async with asyncio.timeout(20):
                return await reader.read()
        finally:
            writer.transport.abort()

    def refused(self) -> list[str]:
        assert self.proxy is not None
        return self.proxy.take_refused()

    async def close(self) -> None:
        if self.proxy is not None:
            await self.proxy.close()
        for server in self._servers:
            server.close()
        for task in list(self._visits):
            task.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)


@pytest.fixture
async def net() -> AsyncIterator[Net]:
    """A proxy that is started with `await net.start()`."""
    net = Net()
    before = asyncio.all_tasks()
    yield net
    await net.close()
    assert asyncio.all_tasks() <= before | {asyncio.current_task()}


def answer(body: bytes = b"hello\n", *fields: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers each request with hello."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(answer())
    await writer.drain()


async def echo_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers with the head that arrived."""
    writer.write(answer(await reader.readuntil(b"\r\n\r\n")))
    await writer.drain()
