"""Messages between us and the supervisor: one JSON object a packet, file descriptors beside it, large ones in a memfd."""

from __future__ import annotations

import array
import json
import os
import stat
from _socket import MSG_CMSG_CLOEXEC, MSG_NOSIGNAL, SCM_RIGHTS, SOL_SOCKET, socket

# The socket module costs 8 ms of a 25 ms start, so this uses the C class below it: a socket.socket is one, too.

PACKET = 65_536
INLINE = 48_000
LARGEST = 64_000_000
_MAX_FDS = 8


class WireError(Exception):
    """What came is not a message of ours."""


def encode(message: dict[str, object], fds: list[int]) -> tuple[bytes, list[int]]:
    """The packet and the descriptors to send with it; a large message goes into a memfd, which is added to `fds`."""
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(data) <= INLINE:
        return data, fds
    body = memory_file(data)
    return b"@", [*fds, body]


def memory_file(data: bytes | memoryview) -> int:
    """An anonymous file that holds `data`, positioned at its start."""
    fd = os.memfd_create("handwork", os.MFD_CLOEXEC)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    return fd


def send_packet(sock: socket, data: bytes, fds: list[int]) -> None:
    rights = [(SOL_SOCKET, SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([data], rights, MSG_NOSIGNAL)


def receive(sock: socket) -> tuple[dict[str, object], list[int]] | None:
    """The next message and its descriptors (the caller owns them); None at the end. Raises WireError on nonsense."""
    room = _MAX_FDS * array.array("i").itemsize
    data, ancillary, _flags, _address = sock.recvmsg(PACKET, 1024 + room, MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    for level, kind, payload in ancillary:
        if level == SOL_SOCKET and kind == SCM_RIGHTS:
            numbers = array.array("i")
            numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
            fds.extend(numbers)
    if not data:
        close_all(fds)
        return None
    try:
        message = json.loads(_body(fds) if data == b"@" else data)
    except (ValueError, OSError, RecursionError) as error:
        close_all(fds)
        raise WireError(str(error)) from error
    if not isinstance(message, dict):
        close_all(fds)
        raise WireError("not an object")
    return message, fds


def _body(fds: list[int]) -> bytes:
    # What runs in the sandbox may have taken over the other end: only a plain file is read, and only so much of it.
    if not fds:
        raise WireError("a body is missing")
    fd = fds.pop()
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise WireError("a body is no file or too large")
        return os.pread(fd, status.st_size, 0)
    finally:
        os.close(fd)


def close_all(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
    fds.clear()
