"""The frames of the relay's stream: kind, channel, length and payload; packets with their descriptors described."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator

MESSAGE, CONTENT, DATA, CREDIT, CLOSE, GONE, PING = range(1, 8)
"""A packet · a piece of a file's content, before the packet that it belongs to · of a pipe or terminal · its reader took so
many bytes · its writer has ended · its reader has · nothing, so that silence says something."""
PIECE = 1 << 16
_LARGEST = 2 * PIECE
_HEAD = struct.Struct(">BII")
_FD = struct.Struct(">cI")
_LINE = 4 * _LARGEST


class Broken(Exception):
    """What came over the stream is no frame of ours, or more than was allowed."""


def frame(kind: int, number: int, payload: bytes = b"") -> bytes:
    return _HEAD.pack(kind, number, len(payload)) + payload


class Frames:
    """Cuts a stream into frames, wherever its pieces end."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Kind, channel and payload of each frame that is complete now. Raises Broken."""
        self._rest += data
        start = 0
        try:
            while len(self._rest) - start >= _HEAD.size:
                kind, number, size = _HEAD.unpack_from(self._rest, start)
                if not MESSAGE <= kind <= PING or size > _LARGEST:
                    raise Broken("no frame begins here")
                if len(self._rest) - start < _HEAD.size + size:
                    return
                start += _HEAD.size + size
                yield kind, number, bytes(self._rest[start - size : start])
        finally:
            del self._rest[:start]


def packed(described: list[tuple[bytes, int]], data: bytes) -> bytes:
    """The payload of a MESSAGE: of each descriptor what it is (f content, x too much of it, r to be read from, w to be
    written to, t a terminal) and its channel, then the packet."""
    return bytes([len(described)]) + b"".join(_FD.pack(*each) for each in described) + data


def given(payload: bytes) -> tuple[list[tuple[bytes, int]], bytes]:
    """The reverse of `packed`. Raises Broken."""
    count = payload[0] if payload else 0
    end = 1 + count * _FD.size
    if len(payload) <= end:
        raise Broken("a message is cut off")
    described = [(bytes(way), int(number)) for way, number in _FD.iter_unpack(payload[1:end])]
    if any(way not in (b"f", b"x", b"r", b"w", b"t") for way, _number in described):
        raise Broken("no such kind of descriptor")
    return described, payload[end:]


class Plain:
    """A stream that any bytes pass through as they are."""

    def encode(self, data: bytes) -> bytes:
        return data

    def decode(self, data: bytes) -> bytes:
        return data


class Lines(Plain):
    """For a stream that only text passes through: lines of base64."""

    def __init__(self) -> None:
        self._rest = b""

    def encode(self, data: bytes) -> bytes:
        return base64.b64encode(data) + b"\n"

    def decode(self, data: bytes) -> bytes:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LINE:
            raise Broken("a line does not end")
        try:
            return b"".join(base64.b64decode(line.strip(), validate=True) for line in lines)
        except ValueError as error:
            raise Broken("a line is no base64") from error
