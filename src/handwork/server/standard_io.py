"""The wire of a stdio server: one JSON-RPC message a line, on descriptors that nothing else of this process can reach."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from queue import SimpleQueue
from typing import Any

from handwork.server.line import message_of, refusal_of

LONGEST = 64 * 1024 * 1024
"""Bytes of one message; a longer line is skipped to its end."""
_PIECE = 1 << 16


@asynccontextmanager
async def standard_io(say: Callable[[str], None]) -> AsyncIterator[tuple[Any, Any, Callable[[], object]]]:
    """The two streams that the SDK's server wants, and what ends the first one. Meanwhile standard input is empty, and standard
    output is standard error.

    Threads read and write, daemon ones: neither a client that sends nothing nor one that takes nothing can hold up our end
    (the SDK's own transport waits for both).
    """
    import anyio
    from mcp.shared.message import SessionMessage

    source, target = _taken()
    into, read_stream = anyio.create_memory_object_stream[Any](0)
    write_stream, outof = anyio.create_memory_object_stream[SessionMessage](0)
    reader = asyncio.create_task(_read(source, into, write_stream.clone(), say), name="standard input")
    writer = asyncio.create_task(_write(target, outof), name="standard output")
    try:
        yield read_stream, write_stream, reader.cancel
    finally:
        reader.cancel()
        await asyncio.wait({reader, writer}, timeout=1.0)  # what was answered last goes out
        writer.cancel()
        await asyncio.gather(reader, writer, return_exceptions=True)
        for stream in (into, read_stream, write_stream, outof):
            stream.close()


def _taken() -> tuple[int, int]:
    """Our own copies of standard input and output, which no child inherits; in their places what is empty and what is seen."""
    source, target = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return source, target


async def _read(source: int, into: Any, replies: Any, say: Callable[[str], None]) -> None:
    """Hand over message by message until standard input ends; the stream ends with it. What is no message is answered here."""
    from mcp.shared.message import SessionMessage

    lines = Lines(source)
    async with into, replies:
        async for line in lines:
            if not line.strip():
                continue
            try:
                await into.send(SessionMessage(message_of(line)))
            except (ValueError, RecursionError):
                say(f"warning: A line of {len(line):,} bytes that is no message was skipped.")
                await replies.send(SessionMessage(refusal_of(line)))
    if lines.skipped:
        say(f"warning: {lines.skipped} lines of more than {LONGEST:,} bytes were skipped.")


class Lines:
    """The lines of a descriptor, read by a thread; one that is too long is skipped and counted."""

    def __init__(self, source: int, longest: int = LONGEST) -> None:
        self._source, self._longest = source, longest
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(16)
        self.skipped = 0
        threading.Thread(target=self._work, name="handwork-stdin", daemon=True).start()

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> bytes:
        line = await self._lines.get()
        self._room.release()
        if line is None:
            raise StopAsyncIteration
        return line

    def _work(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody reads any more
            held, skips = bytearray(), False
            while piece := self._piece():
                *whole, rest = piece.split(b"\n")
                for end in whole:
                    if not skips:
                        self._put(bytes(held + end))
                    held, skips = bytearray(), False
                held += b"" if skips else rest
                if len(held) > self._longest:
                    held, skips, self.skipped = bytearray(), True, self.skipped + 1
            self._put(bytes(held) if held and not skips else None)
            if held and not skips:
                self._put(None)

    def _piece(self) -> bytes:
        try:
            return os.read(self._source, _PIECE)
        except OSError:
            return b""

    def _put(self, line: bytes | None) -> None:
        self._room.acquire()
        self._loop.call_soon_threadsafe(self._lines.put_nowait, line)


async def _write(target: int, outof: Any) -> None:
    """Write message by message; when nobody reads any more, the rest goes nowhere."""
    writing = _Writer(target)
    async with outof:
        async for item in outof:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await writing.write(text.encode() + b"\n")


class _Writer:
    """Writes in a thread of its own, one message after another."""

    def __init__(self, target: int) -> None:
        self._target, self._loop = target, asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        threading.Thread(target=self._work, name="handwork-stdout", daemon=True).start()

    async def write(self, data: bytes) -> None:
        written: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((data, written))
        await written

    def _work(self) -> None:
        open = True
        with suppress(RuntimeError):  # the loop is closed
            while True:
                data, written = self._queue.get()
                view = memoryview(data)
                while open and view:
                    try:
                        view = view[os.write(self._target, view) :]
                    except OSError:
                        open = False
                self._loop.call_soon_threadsafe(_done, written)


def _done(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)
