"""Passing on the body of an HTTP message, however it is framed, with no more of it in memory than a piece."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable

from handwork.sandbox.network.messages import Framing
from handwork.sandbox.network.refusal import Refusal

PIECE = 65_536
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t -~\x80-\xff]*)?\r\n")
_TRAILER_LIMIT = 65_536


async def pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    framing: Framing,
    touch: Callable[[], None],
    *,
    plainly: bool = False,
) -> None:
    """Read a body and write it, framed anew; `plainly`: without chunks, for one who does not know them. `touch` is called
    whenever something moved. Raises Refusal or IncompleteReadError for a body that ends early or is malformed."""
    chunked = framing == "chunked" and not plainly
    async for piece in _pieces(reader, framing):
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        await writer.drain()
        touch()
    if chunked:
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _pieces(reader: asyncio.StreamReader, framing: Framing) -> AsyncIterator[bytes]:
    if framing == "until the end":
        while piece := await reader.read(PIECE):
            yield piece
    elif framing == "chunked":
        while size := await _chunk_size(reader):
            async for piece in _exactly(reader, size):
                yield piece
            if await reader.readexactly(2) != b"\r\n":
                raise Refusal(400, "a chunk is longer than it says")
        await _drop_trailers(reader)
    else:
        async for piece in _exactly(reader, framing):
            yield piece


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size:
        piece = await reader.read(min(size, PIECE))
        if not piece:
            raise asyncio.IncompleteReadError(b"", size)
        size -= len(piece)
        yield piece


async def _chunk_size(reader: asyncio.StreamReader) -> int:
    found = _SIZE.fullmatch(await reader.readuntil(b"\n"))
    if found is None:
        raise Refusal(400, "a chunk's size is malformed")
    return int(found[1], 16)


async def _drop_trailers(reader: asyncio.StreamReader) -> None:
    # What stands behind a body might be taken for part of a head: nobody needs it, so nobody gets it.
    seen = 0
    while (line := await reader.readuntil(b"\n")) != b"\r\n":
        seen += len(line)
        if seen > _TRAILER_LIMIT:
            raise Refusal(400, "the trailer is too long")
