"""The name in a ClientHello, as real clients write it and as hostile ones do."""

from __future__ import annotations

import ssl

import pytest

from handwork.sandbox.network.hello import NotHello, is_tls, server_name


def client_hello(name: str | None) -> bytes:
    """What Python's own TLS says first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(("name", "found"), [("one.test", "one.test"), (None, ""), ("127.0.0.1", "")])
def test_the_name_is_read_as_soon_as_the_message_is_whole_and_not_before(name: str | None, found: str) -> None:
    data = client_hello(name)
    assert is_tls(data)
    assert [server_name(data[:end]) for end in range(1, len(data))] == [None] * (len(data) - 1)
    assert server_name(data) == found
    assert server_name(data + b"anything") == found


@pytest.mark.parametrize("size", [1, 2, 50])
def test_a_message_in_many_records_is_put_together(size: int) -> None:
    message = client_hello("one.test")[5:]
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    assert server_name(b"".join(b"\x16\x03\x01" + len(p).to_bytes(2) + p for p in pieces)) == "one.test"


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x02\x01\x00\x05hello",
        b"\x16\x03\x01\x00\x00\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\x00\x05\x02\x00\x00\x01x",
        b"\x16\x03\x01\x00\x09\x01\x00\x00\x05\x03\x03abc",
        b"\x16\x03\x01\x00\x04\x01\x00\xff\xff\x17\x03\x01\x00\x01x",
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + b"x" * 0x3FFC + (b"\x16\x03\x01\x40\x00" + b"x" * 0x4000) * 3,
    ],
)
def test_what_begins_like_tls_and_is_no_hello_is_refused(data: bytes) -> None:
    with pytest.raises(NotHello):
        server_name(data)


def extended(*extensions: bytes) -> bytes:
    """A ClientHello with these extensions and nothing else of interest."""
    tail = b"".join(extensions)
    body = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00" + len(tail).to_bytes(2) + tail
    message = b"\x01" + len(body).to_bytes(3) + body
    return b"\x16\x03\x01" + len(message).to_bytes(2) + message


def named(*names: bytes, kind: bytes = b"\x00") -> bytes:
    """The extension that names the server."""
    entries = b"".join(kind + len(name).to_bytes(2) + name for name in names)
    body = len(entries).to_bytes(2) + entries
    return b"\x00\x00" + len(body).to_bytes(2) + body


def test_two_names_are_none_wherever_they_stand() -> None:
    assert server_name(extended(named(b"one.test"))) == "one.test"
    assert server_name(extended(named(b"one.test", kind=b"\x01"))) == ""
    for twice in (extended(named(b"one.test", b"two.test")), extended(named(b"one.test"), named(b"one.test"))):
        with pytest.raises(NotHello, match="two server names"):
            server_name(twice)


def test_a_name_that_is_no_text_is_no_name_of_a_host() -> None:
    assert server_name(extended(named(b"\xff\xfe"))) == "\ufffd"
