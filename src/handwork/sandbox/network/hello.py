"""The server's name in the first message of a TLS client (RFC 8446, section 4.1.2, and RFC 6066, section 3)."""

from __future__ import annotations

LARGEST = 65_536
"""Bytes of a first message that are looked at; no client needs as many."""
UNRECOGNIZED_NAME = b"\x15\x03\x03\x00\x02\x02\x70"
"""The alert that a client reads as: this server knows no such name."""


class NotHello(ValueError):
    """It begins like TLS and is no ClientHello."""


def is_tls(data: bytes) -> bool:
    """Whether a stream that begins so is TLS: a handshake record."""
    return data[:1] == b"\x16"


def server_name(data: bytes) -> str | None:
    """The name that the client asks for, '' if it names none; None when more bytes are needed. Raises NotHello."""
    message, complete = _handshake(data)
    if len(message) >= 4 and message[0] != 1:
        raise NotHello("the first handshake message is no ClientHello")
    if len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4]):
        if complete >= LARGEST:
            raise NotHello("the ClientHello is too long")
        return None
    return _name(_Bytes(message[4 : 4 + int.from_bytes(message[1:4])]))


def _handshake(data: bytes) -> tuple[bytes, int]:
    """The handshake bytes of the records so far (a message may be spread over several), and how many bytes there are."""
    message, at = b"", 0
    while at + 5 <= len(data):
        kind, major, size = data[at], data[at + 1], int.from_bytes(data[at + 3 : at + 5])
        if kind != 0x16 or major != 3 or not 0 < size <= 16_640:
            if len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4]):
                break  # the message is whole; what follows is not ours to read
            raise NotHello("a record is no handshake record")
        message += data[at + 5 : at + 5 + size]
        at += 5 + size
    return message, len(data)


class _Bytes:
    """Reads from the front, and raises NotHello when there is not enough."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise NotHello("the ClientHello is cut off")
        self.at += count
        return self.data[self.at - count : self.at]

    def vector(self, width: int) -> _Bytes:
        return _Bytes(self.take(int.from_bytes(self.take(width))))

    @property
    def more(self) -> bool:
        return self.at < len(self.data)


def _name(hello: _Bytes) -> str:
    hello.take(2 + 32)
    for width in (1, 2, 1):  # session, cipher suites, compression methods
        hello.vector(width)
    if not hello.more:
        return ""
    extensions = hello.vector(2)
    found = ""
    seen = False
    while extensions.more:
        kind, body = int.from_bytes(extensions.take(2)), extensions.vector(2)
        if kind == 0:
            if seen:
                raise NotHello("two server names")
            seen, found = True, _entry(body)
    return found


def _entry(body: _Bytes) -> str:
    names, found = body.vector(2), list[str]()
    while names.more:
        kind, name = names.take(1)[0], names.vector(2)
        if kind == 0:
            found.append(name.data.decode("ascii", "strict") if name.data.isascii() else "\ufffd")
    if len(found) > 1:
        raise NotHello("two server names")
    return found[0] if found else ""
