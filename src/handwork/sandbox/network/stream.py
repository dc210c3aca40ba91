"""A connection as the proxy holds it, and how one is made to an address."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from handwork.sandbox.network.messages import HEAD_LIMIT
from handwork.sandbox.network.refusal import Refusal

_ONE_LIMIT, _ALL_LIMIT = 5.0, 20.0
_MANY = 6


class Reader(asyncio.StreamReader):
    """Knows at once that the other side has ended, before all is read; holds at most a few pieces."""

    def __init__(self) -> None:
        super().__init__(limit=HEAD_LIMIT)
        self.over = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.over.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.over.set()


@dataclass(frozen=True, slots=True)
class Stream:
    reader: Reader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def close(self, limit: float = 5.0) -> None:
        """Have what was written delivered, within a limit, and close."""
        self.writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(limit):
                await self.writer.wait_closed()
        self.abort()

    def abort(self) -> None:
        self.writer.transport.abort()


async def accepted(sock: socket.socket) -> Stream:
    """The stream of a connection that was accepted."""
    reader, loop = Reader(), asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock)
    return Stream(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


async def connected(
    addresses: Sequence[str], port: int, shown: str, tls: ssl.SSLContext | None = None, name: str = ""
) -> Stream:
    """A stream to the first address that answers, families in turn. Raises Refusal (502, 504) if none does."""
    problem: OSError | None = None
    try:
        async with asyncio.timeout(_ALL_LIMIT):
            for address in _in_turn(addresses)[:_MANY]:
                try:
                    async with asyncio.timeout(_ONE_LIMIT):
                        return await _connect(address, port, tls, name)
                except TimeoutError:
                    continue  # an OSError, too, and no reason to look like one
                except OSError as error:
                    problem = problem or error
    except TimeoutError:
        problem = None
    if problem is not None:
        why = os.strerror(problem.errno) if problem.errno else str(problem)  # asyncio's own words name Python calls
        raise Refusal(502, f"{shown} cannot be reached: {why}")
    raise Refusal(504, f"{shown} does not answer")


async def _connect(address: str, port: int, tls: ssl.SSLContext | None, name: str) -> Stream:
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await loop.sock_connect(sock, (address, port))
        reader = Reader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.create_connection(
            lambda: protocol, sock=sock, ssl=tls, server_hostname=name if tls else None
        )
    except BaseException:
        sock.close()
        raise
    return Stream(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


def _in_turn(addresses: Sequence[str]) -> list[str]:
    """The best one first, then the other family: where one of them leads nowhere, the other is not tried last."""
    six = [address for address in addresses if ":" in address]
    four = [address for address in addresses if ":" not in address]
    first, second = (six, four) if addresses and ":" in addresses[0] else (four, six)
    pairs = [address for pair in zip(first, second, strict=False) for address in pair]
    return [*pairs, *first[len(second) :], *second[len(first) :]]
