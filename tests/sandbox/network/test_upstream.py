"""The way through the proxy of the user's own environment: what it is told, and that its password stays out here."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from tests.sandbox.network.conftest import Net, Serve, answer, greet
from tests.sandbox.network.websites import certificate

_LOGIN = "Proxy-Authorization: Basic bWU6c2VzYW1lOjE="  # me, sesame:1


class Upstream:
    """A proxy that answers a plain request itself, joins a tunnel to `target`, and keeps the heads that it got."""

    def __init__(self, target: int = 0, verdict: str = "200 OK") -> None:
        self.target, self.verdict, self.heads = target, verdict, list[str]()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        if not head.startswith("CONNECT"):
            writer.write(answer(b"from upstream\n", "Proxy-Authenticate: Basic"))
            await writer.drain()
            return
        writer.write(f"HTTP/1.1 {self.verdict}\r\nProxy-Authenticate: Basic\r\n\r\n".encode())
        if self.target:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
            back.write(await reader.readuntil(b"\r\n\r\n"))
            writer.write(await there.read())
            back.transport.abort()
        await writer.drain()


async def started(net: Net, serve: Serve, scheme: str = "http", **more: str) -> int:
    port = await net.server(serve)
    net.environ |= {"https_proxy": f"{scheme}://me:sesame%3A1@127.0.0.1:{port}", "no_proxy": "direct.test", **more}
    net.environ["http_proxy"] = net.environ["https_proxy"]
    net.allow("one.test", "direct.test", "localhost")
    await net.start()
    return port


async def test_a_tunnel_goes_through_it_unresolved_with_the_users_login(net: Net) -> None:
    upstream = Upstream(await net.server(greet))
    await started(net, upstream)
    said = await net.say(
        b"CONNECT one.test:443 HTTP/1.1\r\nProxy-Authorization: Basic bWluZQ==\r\n\r\nGET / HTTP/1.1\r\n\r\n"
    )
    assert said.endswith(b"hello\n")
    assert upstream.heads == [f"CONNECT one.test:443 HTTP/1.1\r\nHost: one.test:443\r\n{_LOGIN}\r\n\r\n"]
    assert net.asked == []


async def test_a_plain_request_goes_through_it_as_one_to_a_proxy(net: Net) -> None:
    upstream = Upstream()
    await started(net, upstream)
    said = await net.say(
        b"GET http://one.test/a HTTP/1.1\r\nProxy-Authorization: Basic bWluZQ==\r\nConnection: close\r\n\r\n"
    )
    assert said.endswith(b"from upstream\n")
    assert b"Proxy-Auth" not in said
    assert upstream.heads[0].split("\r\n") == [
        "GET http://one.test/a HTTP/1.1", "Host: one.test", _LOGIN, "Connection: close", "", "",
    ]  # fmt: skip


async def test_what_is_not_listed_does_not_come_to_it(net: Net) -> None:
    upstream = Upstream()
    await started(net, upstream)
    for request in (b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n", b"GET http://10.0.0.1/ HTTP/1.1\r\n\r\n"):
        assert (await net.say(request)).startswith(b"HTTP/1.1 403 ")
    assert upstream.heads == []


async def test_loopback_and_no_proxy_go_past_it(net: Net) -> None:
    upstream = Upstream()
    await started(net, upstream)
    port = await net.server(greet)
    net.names["direct.test"] = ["127.0.0.1"]
    for host in ("localhost", "direct.test"):
        said = await net.say(f"GET http://{host}:{port}/ HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
        assert said.endswith(b"hello\n")
    assert upstream.heads == []


@pytest.mark.parametrize("verdict", ["407 Proxy Authentication Required", "403 Forbidden"])
async def test_its_refusal_is_said_without_its_login(net: Net, verdict: str) -> None:
    await started(net, Upstream(verdict=verdict))
    said = await net.say(b"CONNECT one.test:443 HTTP/1.1\r\n\r\n")
    assert said.startswith(f"HTTP/1.1 502 the proxy of this machine refuses one.test:443: {verdict}\r\n".encode())
    assert b"Authenticate" not in said
    assert b"sesame" not in said


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("socks5://me:sesame@127.0.0.1:1", b"The proxy for one.test is one of socks5, which is not spoken here"),
        ("not a proxy", b"The proxy for one.test is no address"),
        ("http://me:sesame@127.0.0.1:1", b"the proxy of this machine (127.0.0.1:1) cannot be reached"),
        ("http://me:sesame@nowhere.test:1", b"the proxy of this machine (nowhere.test:1) is not known"),
    ],
)
async def test_one_that_cannot_be_used_is_said_so(net: Net, address: str, why: bytes) -> None:
    net.environ["all_proxy"] = address
    net.allow("one.test")
    await net.start()
    said = await net.say(b"CONNECT one.test:443 HTTP/1.1\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 502 ")
    assert why in said
    assert b"sesame" not in said
    (told,) = net.refused()  # of an answer to CONNECT curl shows the number alone
    assert told.startswith(f"The sandbox's network: {why.decode()}")
    assert net.refused() == []


async def test_one_that_is_spoken_to_by_tls(net: Net, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tls = certificate(tmp_path, "proxy.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[0]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*tls)
    upstream = Upstream()
    server = await asyncio.start_server(upstream, "127.0.0.1", 0, ssl=context)
    net.names["proxy.test"] = ["127.0.0.1"]
    net.environ["all_proxy"] = f"https://me:sesame%3A1@proxy.test:{server.sockets[0].getsockname()[1]}"
    net.allow("one.test")
    await net.start()
    said = await net.say(b"GET http://one.test/ HTTP/1.1\r\nConnection: close\r\n\r\n")
    server.close()
    assert said.endswith(b"from upstream\n")
    assert _LOGIN in upstream.heads[0]
