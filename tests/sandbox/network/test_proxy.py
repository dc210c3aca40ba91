"""The proxy: what it passes on, what it refuses, and that nothing stays behind."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib

import pytest

from handwork.schema import Decision, Verdict
from tests.sandbox.network.conftest import Net, answer, echo_head, greet

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def get(address: str, *fields: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {address} HTTP/{version}", *fields, "", ""]).encode()


async def quiet() -> None:
    """Give everybody a fifth of a second."""
    never = asyncio.ensure_future(asyncio.Event().wait())
    await asyncio.wait({never}, timeout=0.2)
    never.cancel()


# ---- plain http


async def test_a_listed_name_is_reached_at_the_address_that_was_looked_up_once(net: Net) -> None:
    port = await net.server(greet)
    net.names["one.test"] = ["127.0.0.1"]
    net.allow("one.test")
    await net.start()
    said = await net.say(get(f"http://one.test:{port}/", "Connection: close"))
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert said.endswith(b"hello\n")
    assert net.asked == ["one.test"]
    assert net.refused() == []


async def test_what_is_not_listed_is_refused_unresolved_and_told_once(net: Net) -> None:
    port = await net.server(greet)
    await net.start()
    said = await net.say(get(f"http://evil.test:{port}/"))
    assert said.startswith(b"HTTP/1.1 403 evil.test:")
    assert said.endswith(f"evil.test:{port} may not be reached: it is not in the allow-list (--allow-net)\n".encode())
    await net.say(get(f"http://evil.test:{port}/again"))
    assert net.asked == []
    assert net.reached == 0
    assert net.notices == [f"The sandbox may not reach evil.test:{port}: it is not in the allow-list (--allow-net)"]
    told = f"The sandbox's network refused evil.test:{port}: it is not in the allow-list (--allow-net)"
    assert (net.refused(), net.refused()) == ([told], [])


async def test_the_server_sees_the_checked_host_and_nothing_about_the_proxy(net: Net) -> None:
    port = await net.server(echo_head)
    net.names["one.test"] = ["127.0.0.1"]
    net.allow("one.test")
    await net.start()
    said = await net.say(
        get(
            f"http://One.Test.:{port}/a?b=1#c",
            f"Host: one.test:{port}",
            "Proxy-Authorization: Basic c2VjcmV0",
            "Proxy-Connection: keep-alive",
            "Connection: close, X-Hop",
            "X-Hop: 1",
            "Upgrade: h2c",
            "TE: trailers",
            "X-Mine: kept",
        )
    )
    head = said.partition(b"\r\n\r\n")[2].decode().split("\r\n")
    assert head == ["GET /a?b=1 HTTP/1.1", f"Host: one.test:{port}", "X-Mine: kept", "Connection: close", "", ""]


@pytest.mark.parametrize("body", [b"", b"x" * 3_000_000], ids=["nothing", "3 MB"])
async def test_bodies_go_up_and_come_down_in_chunks_on_one_connection(net: Net, body: bytes) -> None:
    async def sum_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert b"Transfer-Encoding: chunked" in await reader.readuntil(b"\r\n\r\n")
        got = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            got += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        digest = hashlib.sha256(got).hexdigest().encode()
        writer.write(b"20;a=b\r\n" + digest[:32] + b"\r\n20\r\n" + digest[32:] + b"\r\n0\r\nTrailer-Field: 1\r\n\r\n")
        await writer.drain()

    port = await net.server(sum_up)
    await net.start()
    reader, writer = await net.open()
    for _ in range(2):
        writer.write(get(f"http://127.0.0.1:{port}/", "Transfer-Encoding: chunked", method="POST"))
        for at in range(0, len(body), 70_000):
            piece = body[at : at + 70_000]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        writer.write(b"0\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        got = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            got += await reader.readexactly(size)
            await reader.readexactly(2)
        assert await reader.readexactly(2) == b"\r\n"
        assert got.decode() == hashlib.sha256(body).hexdigest()
    writer.transport.abort()


async def test_a_client_of_http_1_0_gets_no_chunks(net: Net) -> None:
    async def chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        await writer.drain()

    port = await net.server(chunks)
    await net.start()
    said = await net.say(get(f"http://127.0.0.1:{port}/", version="1.0"))
    assert said.partition(b"\r\n\r\n")[2] == b"abcde"
    assert b"chunked" not in said


async def test_an_answer_that_ends_with_its_connection_ends_ours_and_half_an_answer_is_no_whole_one(net: Net) -> None:
    async def until_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        short = b"/short" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: 100\r\n" if short else b"") + b"\r\nhalf")
        await writer.drain()
        writer.write_eof()
        await reader.read()

    port = await net.server(until_end)
    await net.start()
    said = await net.say(get(f"http://127.0.0.1:{port}/"))
    assert said.endswith(b"Connection: close\r\n\r\nhalf")
    reader, writer = await net.open()
    writer.write(get(f"http://127.0.0.1:{port}/short"))
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(1000)
    writer.transport.abort()


async def test_expect_continue_head_and_not_modified_pass(net: Net) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"PUT"):
            assert b"Expect: 100-continue" in head
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = await reader.readexactly(4)
            writer.write(answer(body))
        elif head.startswith(b"HEAD"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 304 Not Modified\r\nETag: 1\r\n\r\n")
        await writer.drain()

    port = await net.server(serve)
    await net.start()
    reader, writer = await net.open()
    writer.write(get(f"http://127.0.0.1:{port}/", "Expect: 100-continue", "Content-Length: 4", method="PUT"))
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"body")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    assert await reader.readexactly(4) == b"body"
    writer.write(get(f"http://127.0.0.1:{port}/", method="HEAD"))
    assert b"Content-Length: 1000" in await reader.readuntil(b"\r\n\r\n")
    writer.write(get(f"http://127.0.0.1:{port}/"))
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 304")
    writer.transport.abort()


async def test_a_server_that_answers_before_it_has_read_all_is_heard(net: Net) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(b"too large", status="413 Content Too Large"))
        await writer.drain()
        await reader.read(1000)

    port = await net.server(refuse)
    await net.start()
    reader, writer = await net.open()
    writer.write(get(f"http://127.0.0.1:{port}/", "Content-Length: 1000000000", method="POST") + b"x" * 10_000)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413")
    assert await reader.readexactly(9) == b"too large"
    writer.transport.abort()


# ---- CONNECT


async def connect(net: Net, place: str) -> Streams:
    reader, writer = await net.open()
    writer.write(f"CONNECT {place} HTTP/1.1\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    return reader, writer


async def test_a_tunnel_carries_both_ways_and_halves_close_one_by_one(net: Net) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"first\n")  # as mail servers do, before the client has said a word
        data = await reader.read()
        writer.write(data[::-1])
        await writer.drain()
        writer.write_eof()

    port = await net.server(serve)
    await net.start()
    reader, writer = await connect(net, f"127.0.0.1:{port}")
    assert await reader.readline() == b"first\n"
    writer.write(b"abc")
    writer.write_eof()
    assert await reader.read() == b"cba"
    writer.transport.abort()


async def test_a_web_socket_goes_through_a_tunnel(net: Net) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        key = (await reader.readuntil(b"\r\n\r\n")).partition(b"Sec-WebSocket-Key: ")[2].partition(b"\r\n")[0]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
        writer.write(b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        while frame := await reader.read(1000):
            writer.write(frame)

    port = await net.server(serve)
    await net.start()
    reader, writer = await connect(net, f"127.0.0.1:{port}")
    writer.write(get("/", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
    assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in await reader.readuntil(b"\r\n\r\n")
    for number in range(3):
        writer.write(b"\x81\x01" + b"%d" % number)
        assert await reader.readexactly(3) == b"\x81\x01" + b"%d" % number
    writer.transport.abort()


async def test_a_slow_reader_holds_up_the_sender_instead_of_filling_our_memory(net: Net) -> None:
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while sent < 200_000_000:
            writer.write(b"x" * 1_000_000)
            sent += 1_000_000
            await writer.drain()

    port = await net.server(pour)
    await net.start()
    reader, writer = await connect(net, f"127.0.0.1:{port}")
    await reader.readexactly(1)
    before = -1
    while before != sent:  # nobody reads: it stops by itself
        before = sent
        await quiet()
    assert sent < 60_000_000
    writer.transport.abort()


async def test_three_hundred_tunnels_at_once_and_none_is_left_after_close(net: Net) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)

    port = await net.server(echo)
    await net.start()

    async def one(number: int) -> Streams:
        reader, writer = await connect(net, f"127.0.0.1:{port}")
        writer.write(b"%06d" % number)
        assert await reader.readexactly(6) == b"%06d" % number
        if number % 3 == 0:
            writer.transport.abort()
        return reader, writer

    streams = await asyncio.gather(*(one(number) for number in range(300)))
    assert net.proxy is not None
    await net.proxy.close()
    for number, (reader, writer) in enumerate(streams):
        if number % 3:
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.transport.abort()
    with pytest.raises(ConnectionRefusedError):
        await net.open()


# ---- what is no request


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: one.test\r\n\r\n", 400),
        (b"GET http://one.test/ HTTP/2.0\r\n\r\n", 505),
        (b"GET https://one.test/ HTTP/1.1\r\n\r\n", 501),
        (b"GET ftp://one.test/ HTTP/1.1\r\n\r\n", 501),
        (b"GET http://one.test@evil.test/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http://one.test\\@evil.test/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http://one.test%2eevil.test/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http://one.test:80:80/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http://one.test:99999/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http:///path HTTP/1.1\r\n\r\n", 400),
        (b"GET http://one.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", 400),
        (b"GET http://one.test/ HTTP/1.1\r\nHost: one.test\r\nHost: one.test\r\n\r\n", 400),
        (b"GET http://one.test/ HTTP/1.1\r\nHost: one.test:81\r\n\r\n", 400),
        (b"GET  http://one.test/ HTTP/1.1\r\n\r\n", 400),
        (b"GET http://one.test/ HTTP/1.1\r\nX : 1\r\n\r\n", 400),
        (b"GET http://one.test/ HTTP/1.1\r\nX: 1\r\n folded\r\n\r\n", 400),
        (b"GET http://one.test/ HTTP/1.1\r\nX: a\nY: b\r\n\r\n", 400),
        (b"GET http://one.test/ HTTP/1.1\r\nX: a\rY\r\n\r\n", 400),
        (b"GET http://one.test/ HTTP/1.1\r\nX: a\0\r\n\r\n", 400),
        (b"POST http://one.test/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST http://one.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST http://one.test/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400),
        (b"POST http://one.test/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", 400),
        (b"POST http://one.test/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", 501),
        (b"POST http://one.test/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (b"POST http://one.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"CONNECT one.test HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT http://one.test:443 HTTP/1.1\r\n\r\n", 400),
        (b"CONNECT [fe80::1%25eth0]:80 HTTP/1.1\r\n\r\n", 400),
        (b"GET http://one.test/ HTTP/1.1\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", 431),
        (b"GET http://one.test/ HTTP/1.1\r\n" + b"X: y\r\n" * 300 + b"\r\n", 431),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET http://one.test/\r\n\r\n", 400),
    ],
)
async def test_what_could_be_read_in_two_ways_is_refused(net: Net, request_bytes: bytes, status: int) -> None:
    net.names |= {"one.test": ["127.0.0.1"], "evil.test": ["127.0.0.1"]}
    net.allow("one.test")
    await net.start()
    said = await net.say(request_bytes, end=True)
    assert said.startswith(b"HTTP/1.1 %d " % status), said[:200]
    assert net.reached == 0
    assert net.asked == []


async def test_a_second_request_hidden_in_a_body_goes_nowhere(net: Net) -> None:
    port = await net.server(echo_head)
    await net.start()
    hidden = get("http://evil.test/")
    chunk = b"%x\r\n" % len(hidden) + hidden + b"XX0\r\n\r\n"
    reader, writer = await net.open()
    writer.write(get(f"http://127.0.0.1:{port}/", "Transfer-Encoding: chunked", method="POST") + chunk)
    said = await reader.read()
    assert b"evil" not in said
    assert net.refused() == []
    writer.transport.abort()


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX : 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"",
    ],
)
async def test_a_server_that_answers_nonsense_is_a_bad_gateway(net: Net, said: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()

    port = await net.server(serve)
    await net.start()
    assert (await net.say(get(f"http://127.0.0.1:{port}/"))).startswith(b"HTTP/1.1 502 ")


# ---- addresses


@pytest.mark.parametrize(
    "spelling",
    ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1.", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::1]",
     "0.0.0.0", "0", "localhost", "LOCALHOST.", "a.localhost", "[::]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
     "169.254.169.254", "0xa9fea9fe", "[fe80::1]", "[fd00:ec2::254]", "10.0.0.1", "100.100.100.200", "168.63.129.16"],
)  # fmt: skip
async def test_no_spelling_of_an_address_that_is_not_public_is_reached_unless_it_is_listed(
    net: Net, spelling: str
) -> None:
    port = await net.server(greet)
    net.listed = ["*.test", "example.com"]
    await net.start()
    for request in (get(f"http://{spelling}:{port}/"), f"CONNECT {spelling}:{port} HTTP/1.1\r\n\r\n".encode()):
        said = await net.say(request)
        assert said.startswith(b"HTTP/1.1 403 "), said
    assert net.reached == 0


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", "10.1.2.3", "::1", "64:ff9b::a9fe:a9fe", "2002:a00:1::", "0.0.0.0"]
)  # fmt: skip
async def test_a_listed_name_does_not_lead_to_an_address_that_is_not_public(net: Net, address: str) -> None:
    port = await net.server(greet)
    net.listed = ["rebound.test"]
    net.names["rebound.test"] = [address]
    await net.start()
    said = await net.say(get(f"http://rebound.test:{port}/"))
    assert said.startswith(b"HTTP/1.1 403 "), said
    assert b"rebound.test leads to" in said
    assert net.reached == 0
    assert len(net.refused()) == 1


async def test_of_a_name_with_public_and_other_addresses_only_the_public_ones_are_tried(net: Net) -> None:
    port = await net.server(greet)
    net.listed = ["both.test"]
    net.names["both.test"] = ["127.0.0.1", "192.0.2.1", "2001:4860:4860::8888"]
    net.environ = {}
    await net.start()
    reader, writer = await net.open()
    writer.write(get(f"http://both.test:{port}/"))
    async with asyncio.timeout(20):
        said = await reader.read()
    assert said.startswith((b"HTTP/1.1 502 ", b"HTTP/1.1 504 ")), said
    assert net.reached == 0
    writer.transport.abort()


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["::1", "127.0.0.1"], ["10.0.0.1", "127.0.0.1"]])
async def test_a_listed_name_leads_to_an_address_that_is_listed_as_well(net: Net, addresses: list[str]) -> None:
    port = await net.server(greet)
    net.listed = ["mine.test", f"127.0.0.1:{port}"]
    net.names["mine.test"] = addresses
    await net.start()
    said = await net.say(get(f"http://mine.test:{port}/", "Connection: close"))
    assert said.endswith(b"hello\n")


async def test_localhost_means_this_machine_where_it_is_listed(net: Net) -> None:
    port = await net.server(greet)
    net.listed = [f"localhost:{port}"]
    await net.start()
    said = await net.say(get(f"http://localhost:{port}/", "Connection: close"))
    assert said.endswith(b"hello\n")
    assert net.asked == []
    assert (await net.say(get(f"http://localhost:{port + 1}/"))).startswith(b"HTTP/1.1 403 ")
    assert (await net.say(get(f"http://127.0.0.1:{port}/"))).startswith(b"HTTP/1.1 403 ")


async def test_an_unknown_name_and_a_closed_port_are_said_as_such(net: Net) -> None:
    net.allow("nowhere.test")
    await net.start()
    assert b"the name nowhere.test is not known" in await net.say(get("http://nowhere.test/"))
    assert b"502 127.0.0.1:1 cannot be reached: " in await net.say(get("http://127.0.0.1:1/"))


# ---- waiting


async def test_a_connection_waits_for_an_answer_and_gives_up_when_none_comes(net: Net) -> None:
    port = await net.server(greet)
    never = asyncio.Event()

    async def decide(host: str, port: int, name: str) -> Decision:
        await never.wait()
        return Decision(verdict=Verdict.ALLOW)

    net.decide = decide
    net.patience = 0.2
    await net.start()
    said = await net.say(get(f"http://127.0.0.1:{port}/"))
    assert said.startswith(b"HTTP/1.1 403 ")
    assert b"nobody has answered within 0.2 s" in said
    assert net.reached == 0


async def test_a_client_that_goes_ends_the_question(net: Net) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def decide(host: str, port: int, name: str) -> Decision:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    net.decide = decide
    await net.start()
    _reader, writer = await net.open()
    writer.write(b"CONNECT example.com:443 HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(5):
        await asked.wait()
        writer.transport.abort()
        await ended.wait()
