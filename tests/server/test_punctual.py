"""Connections of clients that say nothing, or only begin to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from handwork.server.punctual import punctual

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/slow":
        await asyncio.sleep(0.6)
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def listening(most: int = 8) -> AsyncIterator[int]:
    config = uvicorn.Config(app, http=punctual(most, 0.3), port=0, lifespan="off", log_config=None, ws="none")
    config.timeout_keep_alive = 1
    server = uvicorn.Server(config)
    server.config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        await server.shutdown()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What came until the other side hung up."""
    pieces = list[bytes]()
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(1 << 16):
                pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("said", [b"", b"G", b"POST /mcp HTTP/1.1\r\nHost: h"])
@pytest.mark.parametrize("before", [0, 1], ids=["first", "second"])
async def test_who_does_not_come_to_the_end_of_a_head_is_hung_up_on(said: bytes, before: int) -> None:
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(before):
            writer.write(REQUEST)
            assert b"204" in await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        assert await ended(reader) == b""
        writer.close()


async def test_who_sends_a_head_letter_by_letter_gains_no_time() -> None:
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def drip() -> None:
            for _ in range(1_000):
                writer.write(b"x")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        await ended(reader)
        assert not dripping.done()
        dripping.cancel()
        writer.close()


async def test_a_request_that_has_come_may_take_as_long_as_it_needs() -> None:
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST.replace(b"/ ", b"/slow ", 1))
        assert b"204" in await reader.readuntil(b"\r\n\r\n")
        writer.write(REQUEST)
        assert b"204" in await reader.readuntil(b"\r\n\r\n")
        writer.close()


async def test_more_connections_than_there_is_room_for_are_closed_at_once() -> None:
    async with listening(most=2) as port:
        kept = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await ended(reader) == b""
        kept[0][1].write(REQUEST)
        assert b"204" in await kept[0][0].readuntil(b"\r\n\r\n")
        for _, each in (*kept, (reader, writer)):
            each.close()
