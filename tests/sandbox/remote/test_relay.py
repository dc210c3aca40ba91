"""The relay's two ends, held together by the test: what crosses, what does not, and what an end that lies can do."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handwork.sandbox.inside import wire
from handwork.sandbox.inside.channel import WINDOW
from handwork.sandbox.inside.frames import CONTENT, CREDIT, DATA, MESSAGE, Broken, Frames, Lines, frame, given, packed
from handwork.sandbox.inside.relay import Relay


class Pair:
    """Two relays with the sockets of a supervisor and of its user."""

    def __init__(self) -> None:
        self.user, near = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.supervisor, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ended: list[str] = []
        self.over = asyncio.Event()
        loop = asyncio.get_running_loop()
        self.near = Relay(
            loop, near, self._carry, first=0, largest=1 << 20, most=64, ended=lambda: self._note("near"), crowded=bool
        )
        self.far = Relay(
            loop, far, self._back, first=1, largest=1 << 20, most=64, ended=lambda: self._note("far"), crowded=bool
        )

    def _carry(self, data: bytes) -> None:
        self.far.feed(data)

    def _note(self, end: str) -> None:
        self.ended.append(end)
        self.over.set()

    def _back(self, data: bytes) -> None:
        self.near.feed(data)

    async def send(self, sock: socket.socket, other: socket.socket, fds: list[int]) -> list[int]:
        """Send descriptors (closed here) from one end's socket; those that arrive at the other."""
        wire.send_packet(sock, b"{}", fds)
        wire.close_all(fds)
        received = await _receive(other)
        assert received is not None
        return received[1]

    def close(self) -> None:
        self.near.end()
        self.far.end()
        self.user.close()
        self.supervisor.close()


async def _receive(sock: socket.socket) -> tuple[dict[str, object], list[int]] | None:
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(sock, readable.set)
    try:
        async with asyncio.timeout(10):
            await readable.wait()
    finally:
        loop.remove_reader(sock)
    return wire.receive(sock)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    pair = Pair()
    yield pair
    pair.close()


async def _read(fd: int, count: int) -> bytes:
    got = b""
    while len(got) < count:
        got += await asyncio.to_thread(os.read, fd, count - len(got))
    return got


async def _write_for_ever(fd: int) -> None:
    while True:
        os.write(fd, b"x")
        await asyncio.sleep(0)


def _descriptors() -> set[Path]:
    return set(Path("/proc/self/fd").iterdir())


async def test_a_file_arrives_with_its_content_from_where_it_stands(pair: Pair) -> None:
    fd = wire.memory_file(b"0123456789" * 20_000)
    os.lseek(fd, 5, os.SEEK_SET)
    (arrived,) = await pair.send(pair.user, pair.supervisor, [fd])
    assert os.read(arrived, 1 << 20) == (b"0123456789" * 20_000)[5:]
    os.close(arrived)


@pytest.mark.parametrize("into", [True, False])
async def test_a_pipe_works_both_ways_and_ends(pair: Pair, into: bool) -> None:
    reader, writer = os.pipe()
    ours, theirs = (writer, reader) if into else (reader, writer)
    (arrived,) = await pair.send(pair.user, pair.supervisor, [theirs])
    source, sink = (ours, arrived) if into else (arrived, ours)
    os.write(source, b"words")
    assert await _read(sink, 5) == b"words"
    os.close(source)
    assert await asyncio.to_thread(os.read, sink, 10) == b""
    os.close(sink)


async def test_a_writer_learns_that_its_reader_is_gone(pair: Pair) -> None:
    reader, writer = os.pipe()
    (arrived,) = await pair.send(pair.user, pair.supervisor, [reader])
    os.close(arrived)
    async with asyncio.timeout(10):
        with pytest.raises(BrokenPipeError):
            await _write_for_ever(writer)
    os.close(writer)


async def test_what_nobody_reads_stops_its_writer(pair: Pair) -> None:
    reader, writer = os.pipe()
    (arrived,) = await pair.send(pair.user, pair.supervisor, [writer])
    os.set_blocking(arrived, False)
    written, idle = 0, 0
    while idle < 200:
        try:
            written += os.write(arrived, bytes(65536))
            idle = 0
        except BlockingIOError:
            idle += 1
            await asyncio.sleep(0)
    assert WINDOW <= written <= WINDOW + 4 * 65536 + (1 << 20)
    os.close(arrived)
    os.close(reader)


async def test_nothing_of_a_program_comes_after_its_end(pair: Pair) -> None:
    reader, writer = os.pipe()
    (arrived,) = await pair.send(pair.user, pair.supervisor, [writer])
    os.write(arrived, b"last words")
    wire.send_packet(pair.supervisor, b'{"job":1,"exit":0}', [])
    assert await _receive(pair.user) == ({"job": 1, "exit": 0}, [])
    os.set_blocking(reader, False)
    assert os.read(reader, 100) == b"last words"
    os.close(arrived)
    os.close(reader)


async def test_no_descriptor_is_left_when_an_end_ends() -> None:
    before = _descriptors()
    pair = Pair()
    reader, writer = os.pipe()
    arrived = await pair.send(pair.user, pair.supervisor, [reader, wire.memory_file(b"x")])
    os.close(writer)
    wire.close_all(arrived)
    pair.near.feed(frame(CONTENT, 9, b"half of a file"))
    pair.close()
    assert _descriptors() <= before


async def test_an_end_is_told_when_the_other_side_of_its_socket_closes(pair: Pair) -> None:
    pair.supervisor.close()
    async with asyncio.timeout(10):
        await pair.over.wait()
    assert pair.ended == ["far"]
    pair.far.end()


LIES = {
    "no frame": b"HTTP/1.1 400 Bad Request\r\n",
    "an endless frame": frame(DATA, 1, b"")[:5] + b"\xff\xff\xff\xff",
    "a message that is cut off": frame(MESSAGE, 0, b"\x03"),
    "no message at all": frame(MESSAGE, 0, b""),
    "an unknown kind of descriptor": frame(MESSAGE, 0, packed([(b"z", 1)], b"{}")),
    "a channel twice": frame(MESSAGE, 0, packed([(b"r", 1), (b"r", 1)], b"{}")),
    "too many channels": b"".join(frame(MESSAGE, 0, packed([(b"r", number)], b"{}")) for number in range(1, 200, 2)),
    "a file without end": frame(CONTENT, 1, bytes(1 << 16)) * 17,
    "many files at a time": b"".join(frame(CONTENT, number, b"x") for number in range(20)),
    "many descriptors in one message": frame(MESSAGE, 0, packed([(b"x", number) for number in range(20)], b"{}")),
    "more than a channel may hold": frame(MESSAGE, 0, packed([(b"r", 1)], b"{}")) + frame(DATA, 1, bytes(1 << 16)) * 24,
}


@pytest.mark.parametrize("lie", LIES)
async def test_an_end_that_lies_breaks_the_stream_and_nothing_else(pair: Pair, lie: str) -> None:
    before = len(_descriptors())
    with pytest.raises(Broken):
        pair.near.feed(LIES[lie])
    pair.near.end()
    assert len(_descriptors()) <= before + 64  # those that wait in the socket for who never reads them


@pytest.mark.parametrize(
    "nonsense", [frame(DATA, 77, b"x"), frame(CREDIT, 77, b"\xff" * 4), frame(CREDIT, 77, b"\xff" * 900)]
)
async def test_news_of_channels_that_are_gone_is_nothing(pair: Pair, nonsense: bytes) -> None:
    pair.near.feed(nonsense)


def test_frames_come_out_as_they_went_in_wherever_they_are_cut() -> None:
    sent = [(DATA, 1, b""), (MESSAGE, 0, packed([(b"f", 3)], b"{}")), (DATA, 2, bytes(70_000))]
    stream = b"".join(frame(*each) for each in sent)
    for size in (1, 7, 4096, len(stream)):
        frames, lines = Frames(), Lines()
        text = b"".join(Lines().encode(stream[start : start + 1000]) for start in range(0, len(stream), 1000))
        came = [
            each
            for start in range(0, len(text), size)
            for each in frames.feed(lines.decode(text[start : start + size]))
        ]
        assert came == sent
    assert given(sent[1][2]) == ([(b"f", 3)], b"{}")


@pytest.mark.parametrize("text", [b"no base64!\n", b"A" * 1_000_000, "ä\n".encode()])
def test_text_that_is_no_line_of_ours_is_refused(text: bytes) -> None:
    with pytest.raises(Broken):
        Lines().decode(text)


async def test_an_end_that_lies_opens_no_thousands_of_descriptors_here(pair: Pair) -> None:
    before = len(_descriptors())
    flood = frame(MESSAGE, 0, packed([(b"f", number) for number in range(8)], b"{}"))
    with pytest.raises(Broken, match="too many descriptors"):
        pair.near.feed(flood * 4000)
    assert len(_descriptors()) - before < 600
