"""Certificates and proxies on the way to an MCP server: what is not trusted gets nothing, what the user's environment names is used."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from handwork.errors import MCPUnavailable
from handwork.mcp.content import Text
from tests.mcp.http_servers import Plain, around, connected

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="certificates are made with the openssl program"
)
ELSEWHERE = "mcp.example"
"""A host that only the proxy can reach."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 and ELSEWHERE that nobody has signed, with its key."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    line = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", f"subjectAltName=IP:127.0.0.1,DNS:{ELSEWHERE}", "-keyout", str(file), "-out", f"{file}.crt"]
    subprocess.run([*line.split(), *names], check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + Path(f"{file}.crt").read_bytes())
    return file


@pytest.fixture
async def server(certificate: Path) -> AsyncIterator[tuple[int, Plain]]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    plain, app = Plain(), web.Application()
    app.router.add_route("*", "/{path:.*}", plain.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    listening = site._server
    assert isinstance(listening, asyncio.Server)
    yield listening.sockets[0].getsockname()[1], plain
    await runner.cleanup()


@asynccontextmanager
async def tunnel(port: int, heads: list[str], refuse: bytes = b"") -> AsyncIterator[str]:
    """A proxy whose every CONNECT ends at a port of this machine; `heads` is what it was asked."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if refuse:
            writer.write(b"HTTP/1.1 %s\r\ncontent-length: 0\r\n\r\n" % refuse)
            writer.close()
            return
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://user:pr0xy-pw@127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    finally:
        proxy.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except OSError:
        pass
    writer.close()


async def test_a_certificate_that_is_not_trusted_gets_nothing(server: tuple[int, Plain], tmp_path: Path) -> None:
    port, plain = server
    async with connected(f"https://127.0.0.1:{port}/mcp", tmp_path, headers={"X-Api-Key": "mine"}) as connection:
        with pytest.raises(MCPUnavailable, match="shows a certificate that is not trusted: self.signed") as caught:
            await connection.ready()
    assert caught.value.lasting
    assert "SSL_CERT_FILE" in caught.value.hint
    assert plain.seen == []


async def test_a_certificate_that_is_named_is_trusted(
    server: tuple[int, Plain], tmp_path: Path, certificate: Path
) -> None:
    there = around(tmp_path, environ={"SSL_CERT_FILE": str(certificate)})
    async with connected(f"https://127.0.0.1:{server[0]}/mcp", tmp_path, around_it=there) as connection:
        assert (await connection.call("echo", {"text": "tls"})).parts == (Text("tls"),)


async def test_a_file_without_certificates_is_told(server: tuple[int, Plain], tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("nothing")
    there = around(tmp_path, environ={"SSL_CERT_FILE": str(tmp_path / "none.pem")})
    async with connected(f"https://127.0.0.1:{server[0]}/mcp", tmp_path, around_it=there) as connection:
        with pytest.raises(MCPUnavailable, match="holds no certificates that can be read"):
            await connection.ready()


async def test_the_users_proxy_is_used_and_sees_no_header_of_ours(
    server: tuple[int, Plain], tmp_path: Path, certificate: Path
) -> None:
    port, plain = server
    heads: list[str] = []
    async with tunnel(port, heads) as proxy:
        there = around(tmp_path, environ={"HTTPS_PROXY": proxy, "SSL_CERT_FILE": str(certificate)})
        url = f"https://{ELSEWHERE}/mcp"
        async with connected(url, tmp_path, around_it=there, headers={"X-Api-Key": "mine"}) as connection:
            assert (await connection.call("echo", {"text": "far"})).parts == (Text("far"),)
    assert heads[0].startswith(f"CONNECT {ELSEWHERE}:443 ")
    assert "proxy-authorization" in heads[0].lower()
    assert not [head for head in heads if "mine" in head]
    assert plain.seen[0][2]["x-api-key"] == "mine"


async def test_a_proxy_that_refuses_is_told_without_its_password(
    server: tuple[int, Plain], tmp_path: Path, certificate: Path
) -> None:
    async with tunnel(server[0], [], b"407 Proxy Authentication Required") as proxy:
        there = around(tmp_path, environ={"HTTPS_PROXY": proxy})
        async with connected(f"https://{ELSEWHERE}/mcp", tmp_path, around_it=there) as connection:
            with pytest.raises(MCPUnavailable, match="the proxy failed .*407") as caught:
                await connection.ready()
    assert "pr0xy-pw" not in str(caught.value)
    assert "HTTPS_PROXY" in caught.value.hint


async def test_a_proxy_that_is_no_address_is_told(tmp_path: Path) -> None:
    there = around(tmp_path, environ={"HTTPS_PROXY": "socks5://127.0.0.1:1"})
    async with connected(f"https://{ELSEWHERE}/mcp", tmp_path, around_it=there) as connection:
        with pytest.raises(MCPUnavailable, match="proxy") as caught:
            await connection.ready()
    assert caught.value.lasting
