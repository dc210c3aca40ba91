"""A descriptor as the relay carries it, and what is done with sockets below what Python's own module offers."""

from __future__ import annotations

import array
import os
from _socket import AF_UNIX, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket
from collections.abc import Callable
from typing import Protocol

from . import wire

WINDOW = 128 * 1024
"""Bytes of one channel that may be on their way: what its reader does not take stops its writer, as in a pipe."""
MAX_FDS = 8


class Loop(Protocol):
    """What is needed of an event loop; asyncio's has it."""

    def add_reader(self, fd: int, callback: Callable[..., object], *args: object) -> object: ...
    def remove_reader(self, fd: int) -> object: ...
    def add_writer(self, fd: int, callback: Callable[..., object], *args: object) -> object: ...
    def remove_writer(self, fd: int) -> object: ...


class Channel:
    """One descriptor that crossed: `source` is read here and written there, `sink` the other way round, -1 for none."""

    __slots__ = ("closing", "credit", "hung", "number", "sink", "source", "taken", "terminal", "waiting")

    def __init__(self, number: int, source: int = -1, sink: int = -1) -> None:
        self.number, self.source, self.sink = number, source, sink
        self.credit, self.taken = WINDOW, 0
        self.waiting = bytearray()
        self.closing = self.hung = False
        self.terminal = self.two_way and os.isatty(sink)

    @property
    def two_way(self) -> bool:
        """A terminal: one descriptor for both directions, which ends in both at once."""
        return self.source == self.sink


def socket_of(fd: int) -> socket:
    """The same socket as an object, over a descriptor of its own."""
    return socket(AF_UNIX, SOCK_STREAM, 0, os.dup(fd))


def receive(sock: socket) -> tuple[bytes, list[int]]:
    room = array.array("i").itemsize * MAX_FDS
    data, ancillary, _flags, _address = sock.recvmsg(wire.PACKET, 1024 + room, MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for level, kind, payload in ancillary:
        if level == SOL_SOCKET and kind == SCM_RIGHTS:
            numbers = array.array("i")
            numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
            fds.extend(numbers)
    return data, fds
