"""Certificates: an untrusted one is no passing trouble, a named one is trusted, and no key goes out before that."""

from __future__ import annotations

import asyncio
import base64
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from handwork.config import LLMSettings
from handwork.errors import ModelConnectionError, ModelError, TransientModelError, UntrustedServerError
from handwork.llm.asking import close_model, reply_of
from handwork.llm.base import Model
from handwork.llm.build import build_model
from handwork.schema import Message, Request
from tests.cli.command import handwork
from tests.support.fault_server import FaultServer, stream_of

ASK = Request([Message.user_message("x")])
KEY = "secret-key-123456"
ELSEWHERE = "model.example"
"""A host that only the proxy can reach."""

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="certificates are made with the openssl program"
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 and ELSEWHERE that nobody has signed, with its key."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    line = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", f"subjectAltName=IP:127.0.0.1,DNS:{ELSEWHERE}", "-keyout", str(file), "-out", f"{file}.crt"]
    subprocess.run([*line.split(), *names], check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + Path(f"{file}.crt").read_bytes())
    return file


class _TlsFront:
    """Speaks TLS in front of a plain server."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
        finally:
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@pytest.fixture
async def address(certificate: Path) -> AsyncIterator[tuple[str, FaultServer]]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with FaultServer([stream_of("a")]) as plain:
        front = _TlsFront(int(plain.url.rpartition(":")[2].removesuffix("/v1")))
        server = await asyncio.start_server(front.serve, "127.0.0.1", 0, ssl=context)
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", plain
        server.close()


def model_at(url: str, environ: dict[str, str]) -> Model:
    return build_model(LLMSettings(model="m", base_url=url, api_key=KEY, retries=5), environ)


async def test_an_untrusted_certificate_is_an_error_at_once_that_names_the_way_out(
    address: tuple[str, FaultServer],
) -> None:
    url, server = address
    model = model_at(url, {})
    with pytest.raises(UntrustedServerError, match="SSL_CERT_FILE") as caught:
        await reply_of(model, ASK)
    await close_model(model)
    assert not isinstance(caught.value, TransientModelError)
    assert server.requests == []


async def test_a_certificate_that_is_named_is_trusted(address: tuple[str, FaultServer], certificate: Path) -> None:
    url, server = address
    model = model_at(url, {"SSL_CERT_FILE": str(certificate)})
    assert (await reply_of(model, ASK)).content == "a"
    await close_model(model)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_an_error_of_the_connection_brings_no_request_along(address: tuple[str, FaultServer]) -> None:
    for url in (address[0], "http://127.0.0.1:1/v1"):
        model = build_model(LLMSettings(model="m", base_url=url, api_key=KEY, retries=0), {})
        with pytest.raises(ModelError) as caught:
            await reply_of(model, ASK)
        await close_model(model)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert "certificate" in str(caught.value) or "connection refused" in str(caught.value)


# ---- through a proxy, with a certificate of one's own (CONTRACT E11)


class _Tunnel:
    """A proxy that knows one way: CONNECT, to a port of this machine. `heads` are what it was asked."""

    def __init__(self, port: int, refuse: bytes = b"") -> None:
        self._port, self._refuse = port, refuse
        self.heads: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if self._refuse:
            writer.write(b"HTTP/1.1 %s\r\ncontent-length: 0\r\n\r\n" % self._refuse)
            writer.close()
            return
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
        finally:
            writer.close()


@asynccontextmanager
async def tunnel(address: str, refuse: bytes = b"") -> AsyncIterator[tuple[str, _Tunnel]]:
    proxy = _Tunnel(int(address.rpartition(":")[2].removesuffix("/v1")), refuse)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", proxy
    server.close()


async def test_a_request_goes_encrypted_through_the_proxy_to_a_server_whose_own_certificate_is_named(
    address: tuple[str, FaultServer], certificate: Path
) -> None:
    url, server = address
    async with tunnel(url) as (at, proxy):
        environ = {"HTTPS_PROXY": f"http://me:pass@{at}", "SSL_CERT_FILE": str(certificate)}
        model = model_at(f"https://{ELSEWHERE}/v1", environ)
        assert (await reply_of(model, ASK)).content == "a"
        await close_model(model)
    (head,) = proxy.heads
    assert head.startswith(f"CONNECT {ELSEWHERE}:443 ")
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:pass').decode()}" in head
    assert KEY not in head
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "proxy-authorization" not in server.requests[0].headers


async def test_through_a_proxy_too_an_untrusted_certificate_gets_no_key(address: tuple[str, FaultServer]) -> None:
    url, server = address
    async with tunnel(url) as (at, _):
        model = model_at(f"https://{ELSEWHERE}/v1", {"HTTPS_PROXY": at})
        with pytest.raises(UntrustedServerError, match="SSL_CERT_FILE"):
            await reply_of(model, ASK)
        await close_model(model)
    assert server.requests == []


async def test_a_proxy_that_refuses_is_named_with_its_reason_and_without_its_password(
    address: tuple[str, FaultServer],
) -> None:
    async with tunnel(address[0], b"407 Proxy Authentication Required") as (at, _):
        settings = LLMSettings(model="m", base_url=f"https://{ELSEWHERE}/v1", api_key=KEY, retries=0)
        model = build_model(settings, {"HTTPS_PROXY": f"http://me:pass-word@{at}"})
        with pytest.raises(ModelConnectionError) as caught:
            await reply_of(model, ASK)
        await close_model(model)
    assert "407 Proxy Authentication Required" in caught.value.what
    assert caught.value.hint.startswith("the proxy 127.0.0.1 failed")
    assert "pass-word" not in str(caught.value)


async def test_the_command_line_honours_proxy_and_certificate(
    address: tuple[str, FaultServer], certificate: Path, tmp_path: Path
) -> None:
    async with tunnel(address[0]) as (at, proxy):
        environ = {"HTTPS_PROXY": f"http://{at}", "SSL_CERT_FILE": str(certificate), "HANDWORK_LLM_API_KEY": KEY}
        arguments = ("run", "Say a.", "--model", "m", "--base-url", f"https://{ELSEWHERE}/v1")
        ended = await handwork(*arguments, cwd=tmp_path, **environ)
    assert (ended.code, ended.out) == (0, "a\n"), ended.err
    assert len(proxy.heads) == 1
