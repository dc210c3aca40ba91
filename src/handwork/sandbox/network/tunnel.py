"""What goes through a CONNECT: bytes both ways, until both sides have ended; TLS must name a place that may be reached."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from handwork.config.host_names import normal_host
from handwork.sandbox.network import hello
from handwork.sandbox.network.gate import Gate
from handwork.sandbox.network.refusal import Refusal
from handwork.sandbox.network.stream import Stream

_PIECE = 131_072
_IDLE = 900.0
"""Seconds in which nothing moves, after which nobody is taken to be there any more."""
_HELLO_LIMIT = 30.0


async def relay(client: Stream, server: Stream, host: str, port: int, gate: Gate) -> None:
    """Until both have ended. Raises OSError or TimeoutError when one broke or nothing moves; what is refused is ended here."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_IDLE) as limit:

        def touch() -> None:
            limit.reschedule(loop.time() + _IDLE)

        try:
            await both(_up(client, server, host, port, gate, touch), _pump(server, client, touch))
        except Refusal:
            # In the server's place: programs read this alert as "no such name here".
            with contextlib.suppress(OSError):
                await client.send(hello.UNRECOGNIZED_NAME)
            await client.close()


async def both(one: Coroutine[Any, Any, None], other: Coroutine[Any, Any, None]) -> None:
    """Do both; the first that fails ends the other, and its error is raised."""
    tasks = [asyncio.ensure_future(one), asyncio.ensure_future(other)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(source: Stream, target: Stream, touch: Callable[[], None]) -> None:
    while data := await source.reader.read(_PIECE):
        await target.send(data)
        touch()
    if target.writer.can_write_eof():
        target.writer.write_eof()


async def _up(client: Stream, server: Stream, host: str, port: int, gate: Gate, touch: Callable[[], None]) -> None:
    data = await client.reader.read(_PIECE)
    if hello.is_tls(data):
        data = await _whole_hello(client, data, host, port, gate)
    if data:
        await server.send(data)
        touch()
    await _pump(client, server, touch)


async def _whole_hello(client: Stream, data: bytes, host: str, port: int, gate: Gate) -> bytes:
    """The first bytes, once the name in them was checked: behind one address there may be many names, and only the one that was
    asked for, or another that may be reached, is spoken to."""
    try:
        async with asyncio.timeout(_HELLO_LIMIT):
            while (name := hello.server_name(data)) is None:
                if not (more := await client.reader.read(_PIECE)):
                    raise hello.NotHello("it ends in the middle")
                data += more
        named = normal_host(name) if name else host
    except ValueError as error:  # NotHello is one
        raise gate.refusal(host, port, f"what begins like TLS there is none ({error})") from None
    if named != host:
        await gate.check(named, port, because=f"a connection to {host} asked for {named} by TLS")
    return data
