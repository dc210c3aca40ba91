"""Carries a supervisor's socket, its messages and their descriptors, over one stream of bytes: the same code at both ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from _socket import (
    AF_UNIX,
    SHUT_WR,
    SO_SNDBUF,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
    socketpair,
)
from collections.abc import Callable

from . import wire
from .channel import MAX_FDS, WINDOW, Channel, Loop, receive, socket_of
from .frames import CLOSE, CONTENT, CREDIT, DATA, GONE, MESSAGE, PIECE, PING, Broken, Frames, frame, given, packed

_OVER = 1 << 20
"""How far beyond that a channel may go with what was written before its program ended: nothing of it may come later than the end."""
_PACKETS = 16
_WAITING = 512
"""Descriptors in packets that the socket does not take for now."""
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which Python names since 3.10


class Relay:
    """One end. `send` puts bytes on the stream, `ended` is told when the socket's other end has closed, `crowded` whether the
    stream should not be read for now. `first` is 0 or 1, so that both ends number apart. That the other end has more than `largest`
    bytes of contents on their way, or more than `most` descriptors here, breaks the rules."""

    def __init__(
        self, loop: Loop, sock: socket, send: Callable[[bytes], object], *, first: int, largest: int, most: int,
        ended: Callable[[], object], crowded: Callable[[bool], object],
    ) -> None:  # fmt: skip
        self._loop, self._sock, self._send = loop, sock, send
        self._next, self._largest, self._most = first, largest, most
        self._ended, self._crowded = ended, crowded
        self._frames = Frames()
        self._channels: dict[int, Channel] = {}
        self._contents: dict[int, int] = {}
        self._pending = 0
        self._unsent: list[tuple[bytes, list[int]]] = []
        self._held = self.over = False
        sock.setblocking(False)
        loop.add_reader(sock.fileno(), self._packets)

    # ---- for whoever holds the stream

    def feed(self, data: bytes) -> None:
        """Take what came over the stream. Raises Broken for what no end of ours sends."""
        for kind, number, payload in self._frames.feed(data):
            if self.over:
                return
            self._take(kind, number, payload)

    def hold(self, held: bool) -> None:
        """Send nothing for now, or go on: the stream has no room, or has some again."""
        if held == self._held or self.over:
            return
        self._held = held
        if held:
            self._loop.remove_reader(self._sock.fileno())
        else:
            self._loop.add_reader(self._sock.fileno(), self._packets)
        for channel in list(self._channels.values()):
            self._watch(channel)

    def end(self) -> None:
        """Close all that is open here; the socket's other end notices."""
        if self.over:
            return
        self.over = True
        self._loop.remove_reader(self._sock.fileno())
        self._loop.remove_writer(self._sock.fileno())
        for channel in list(self._channels.values()):
            self._drop(channel)
        wire.close_all(list(self._contents.values()))
        for _data, fds in self._unsent:
            wire.close_all(fds)
        self._sock.close()

    # ---- from the socket to the stream

    def _packets(self) -> None:
        for _ in range(_PACKETS):
            if self._held or self.over:
                return
            try:
                data, fds = receive(self._sock)
            except BlockingIOError:
                return
            except OSError:
                data, fds = b"", []
            if not data:
                wire.close_all(fds)
                self._ended()
                return
            # What was written before this message arrives before it; before a program's end, all of it.
            for channel in list(self._channels.values()):
                self._pump(channel, over=b'"exit":' in data)
            described = [self._open(fd) for fd in fds]
            self._send(frame(MESSAGE, 0, packed(described, data)))

    def _open(self, fd: int) -> tuple[bytes, int]:
        number, self._next = self._next, self._next + 2
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode):
            return self._send_content(fd, number), number
        os.set_blocking(fd, False)
        way = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE if stat.S_ISFIFO(mode) else os.O_RDWR
        channel = Channel(number, -1 if way == os.O_WRONLY else fd, -1 if way == os.O_RDONLY else fd)
        self._add(channel)
        return {os.O_RDONLY: b"r", os.O_WRONLY: b"w"}.get(way, b"t"), number

    def _send_content(self, fd: int, number: int) -> bytes:
        position = os.lseek(fd, 0, os.SEEK_CUR)
        try:
            if os.fstat(fd).st_size - position > wire.LARGEST:
                return b"x"
            while data := os.pread(fd, PIECE, position):
                self._send(frame(CONTENT, number, data))
                position += len(data)
        finally:
            os.close(fd)
        return b"f"

    def _pump(self, channel: Channel, over: bool = False) -> None:
        """Send what can be read without waiting, as far as the other end has room; `over`: some more than that."""
        least = -_OVER if over else 0
        while channel.source >= 0 and not channel.hung and channel.credit > least and not (self._held and not over):
            try:
                data = os.read(channel.source, min(PIECE, channel.credit - least))
            except BlockingIOError:
                break
            except OSError:  # a terminal says so that nobody is at its other side any more
                data = b""
            if not data:
                self._end_source(channel)
                return
            channel.credit -= len(data)
            self._send(frame(DATA, channel.number, data))
            if not over:
                break
        self._watch(channel)

    # ---- from the stream to the socket

    def _take(self, kind: int, number: int, payload: bytes) -> None:
        if kind == MESSAGE:
            self._message(payload)
        elif kind == CONTENT:
            self._content(number, payload)
        elif kind != PING and (channel := self._channels.get(number)) is not None:
            if kind == DATA:
                self._data(channel, payload)
            elif kind == CREDIT:
                channel.credit += int.from_bytes(payload, "big")
                self._watch(channel)
            elif kind == CLOSE:
                channel.closing = True
                self._drain(channel)
            elif kind == GONE:
                self._drop(channel)

    def _content(self, number: int, payload: bytes) -> None:
        self._pending += len(payload)
        if self._pending > self._largest or len(self._contents) > MAX_FDS:
            raise Broken("too much at a time")
        if number not in self._contents:
            self._contents[number] = wire.memory_file(b"")
        os.write(self._contents[number], payload)

    def _message(self, payload: bytes) -> None:
        described, data = given(payload)
        theirs = sum(number % 2 != self._next % 2 for number in self._channels)
        waiting = sum(len(fds) for _data, fds in self._unsent)
        if len(described) > MAX_FDS or theirs + len(described) > self._most or waiting > _WAITING:
            raise Broken("too many descriptors")
        fds: list[int] = []
        try:
            for way, number in described:
                fds.append(self._receive_one(way, number))
        except BaseException:
            wire.close_all(fds)
            raise
        if b'"exit":' in data:
            for channel in list(self._channels.values()):
                self._make_room(channel)
        self._unsent.append((data, fds))
        self._crowded(len(self._unsent) > _PACKETS)
        self._flush()

    def _receive_one(self, way: bytes, number: int) -> int:
        """The descriptor that stands here for the one that the other end sent."""
        if way == b"f":
            fd = self._contents.pop(number, -1)
            fd = wire.memory_file(b"") if fd < 0 else fd
            self._pending -= os.lseek(fd, 0, os.SEEK_CUR)
            os.lseek(fd, 0, os.SEEK_SET)
            return fd
        if way == b"x":
            return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        if number in self._channels:
            raise Broken("a channel is opened twice")
        if way == b"t":
            mine, theirs = (end.detach() for end in socketpair(AF_UNIX, SOCK_STREAM))
            channel = Channel(number, mine, mine)
        elif way == b"r":
            theirs, mine = os.pipe()
            channel = Channel(number, sink=mine)
        else:
            mine, theirs = os.pipe()
            channel = Channel(number, source=mine)
        os.set_blocking(mine, False)
        self._add(channel)
        return theirs

    def _flush(self) -> None:
        while self._unsent:
            data, fds = self._unsent[0]
            try:
                wire.send_packet(self._sock, data, fds)
            except BlockingIOError:
                self._loop.add_writer(self._sock.fileno(), self._flush)
                return
            except OSError:
                self._ended()
                return
            del self._unsent[0]
            wire.close_all(fds)
        self._crowded(False)
        self._loop.remove_writer(self._sock.fileno())

    def _data(self, channel: Channel, payload: bytes) -> None:
        if channel.sink < 0:
            return
        channel.waiting += payload
        if len(channel.waiting) > WINDOW + _OVER:
            raise Broken("a channel has more than was allowed")
        self._drain(channel)

    def _drain(self, channel: Channel) -> None:
        """Write what waits, give room to the other end, and close after it if all is there."""
        while channel.waiting and channel.sink >= 0:
            try:
                written = os.write(channel.sink, channel.waiting[:PIECE])
            except BlockingIOError:
                self._loop.add_writer(channel.sink, self._drain, channel)
                return
            except OSError:
                self._lose_reader(channel)
                return
            del channel.waiting[:written]
            channel.taken += written
            if channel.taken >= WINDOW // 4:  # the rest always leaves the other end room to go on
                self._send(frame(CREDIT, channel.number, channel.taken.to_bytes(4, "big")))
                channel.taken = 0
        if channel.sink >= 0:
            self._loop.remove_writer(channel.sink)
        if not channel.closing:
            return
        if channel.two_way and not channel.terminal and channel.sink >= 0:
            with contextlib.suppress(OSError), contextlib.closing(socket_of(channel.sink)) as end:
                end.shutdown(SHUT_WR)  # it is closed when who holds the other end has closed that
        else:
            self._drop(channel)

    def _make_room(self, channel: Channel) -> None:
        # Who reads until nothing is left right after a program's end finds all of it.
        if not channel.waiting or channel.sink < 0:
            return
        with contextlib.suppress(OSError):
            if channel.two_way:
                with contextlib.closing(socket_of(channel.sink)) as end:
                    end.setsockopt(SOL_SOCKET, SO_SNDBUF, 2 * _OVER)
            else:
                fcntl.fcntl(channel.sink, _SET_PIPE_SIZE, _OVER)
        self._drain(channel)

    # ---- channels

    def _add(self, channel: Channel) -> None:
        self._channels[channel.number] = channel
        self._watch(channel)
        if channel.sink >= 0 and not channel.two_way:
            # A pipe whose readers are gone is always ready, and never otherwise: nobody writes into this end.
            self._loop.add_reader(channel.sink, self._lose_reader, channel)

    def _watch(self, channel: Channel) -> None:
        if channel.source < 0 or channel.hung:
            return
        if channel.credit > 0 and not self._held:
            self._loop.add_reader(channel.source, self._pump, channel)
        else:
            self._loop.remove_reader(channel.source)

    def _end_source(self, channel: Channel) -> None:
        self._send(frame(CLOSE, channel.number))
        if channel.terminal:
            # A program may leave its terminal a moment before it ends; a hang-up from us in between would become its exit code.
            channel.hung = True
            self._loop.remove_reader(channel.source)
        else:
            self._drop(channel)

    def _lose_reader(self, channel: Channel) -> None:
        self._send(frame(GONE, channel.number))
        self._drop(channel)

    def _drop(self, channel: Channel) -> None:
        self._channels.pop(channel.number, None)
        for fd in {channel.source, channel.sink} - {-1}:
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)
            os.close(fd)
        channel.source = channel.sink = -1
        channel.waiting.clear()
