"""Where the name of an authorization server leads: it is looked up once, looked at, and kept to."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from handwork.errors import MCPUnavailable
from handwork.mcp.address import Address
from handwork.mcp.login_place import places_of
from handwork.mcp.login_web import get, post

PUBLIC = "93.184.215.14"
TLS = pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made with the openssl program")


class Names:
    """The system's resolver, with names that exist only here; `asked` are those that were looked up."""

    def __init__(self, known: Mapping[str, list[str]]) -> None:
        self.known, self.asked, self._system = known, list[str](), socket.getaddrinfo

    def __call__(self, host: Any, *rest: Any, **more: Any) -> Any:
        self.asked.append(host)
        if host not in self.known:
            if "example" in str(host):
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return self._system(host, *rest, **more)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, 0)) for place in self.known[host]]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    found = Names({"mcp.example": [PUBLIC]})
    monkeypatch.setattr(socket, "getaddrinfo", found)
    return found


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """One for login.example, with its key."""
    key, file = tmp_path / "key.pem", tmp_path / "crt.pem"
    line = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=x"
    names = ["-addext", "subjectAltName=DNS:login.example", "-keyout", str(key), "-out", str(file)]
    subprocess.run([*line.split(), *names], check=True, capture_output=True)
    file.write_text(file.read_text() + key.read_text())
    return file


def server(url: str = "https://mcp.example/mcp") -> Address:
    return Address("docs", url, url, url.removesuffix("/mcp"))


@asynccontextmanager
async def listening(context: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A port of this machine, and what came to it."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(b"")
        heads[-1] = await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 8\r\nconnection: close\r\n\r\n{"a": 1}')
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield listener.sockets[0].getsockname()[1], heads
    finally:
        listener.close()


@pytest.mark.parametrize(
    ("places", "what"),
    [
        (["127.0.0.1"], "this machine itself"),
        (["::1"], "this machine itself"),
        (["::ffff:127.0.0.1"], "this machine itself"),
        (["10.1.2.3"], "a private network"),
        (["169.254.169.254"], "the local link"),
        (["fd00::1"], "a private network"),
        ([PUBLIC, "127.0.0.1"], "this machine itself"),
    ],
)
async def test_a_name_that_leads_where_only_this_machine_reaches_is_refused_before_anything_is_sent(
    names: Names, places: list[str], what: str
) -> None:
    async with listening() as (port, heads):
        names.known = {**names.known, "login.example": places}
        for asking in (get, lambda *more: post(more[0], {"secret": "x"}, *more[1:])):
            with pytest.raises(
                MCPUnavailable, match=f"that name leads to .*, which is {what}.*, so it was not asked"
            ) as caught:
                await asking(f"https://login.example:{port}/x", server(), {})
            assert caught.value.lasting
    assert heads == []


@pytest.mark.parametrize(
    ("own", "login", "allowed"),
    [
        (["10.0.0.1"], ["10.9.9.9"], True),
        (["198.18.0.4"], ["198.18.0.5"], True),  # some programs give every name an address of their own
        (["10.0.0.1"], ["127.0.0.1"], False),
        (["10.0.0.1"], ["169.254.169.254"], False),
        ([PUBLIC, "10.0.0.1"], ["10.9.9.9"], False),
        ([], ["10.9.9.9"], False),
        ([PUBLIC], [PUBLIC], True),
    ],
)
async def test_a_server_in_a_private_place_may_send_to_a_place_of_the_same_kind(
    names: Names, own: list[str], login: list[str], allowed: bool
) -> None:
    names.known = {"login.example": login} | ({"mcp.example": own} if own else {})
    if allowed:
        assert await places_of("https://login.example/x", server()) == login
        return
    with pytest.raises(MCPUnavailable, match="so it was not asked"):
        await places_of("https://login.example/x", server())


async def test_a_name_that_nobody_knows_is_told(names: Names) -> None:
    with pytest.raises(MCPUnavailable, match="cannot be found: Name or service not known – check the network"):
        await get("https://login.example/x", server(), {})


@TLS
async def test_what_was_looked_at_is_connected_to_under_the_name_whose_certificate_it_has_to_show(
    names: Names, certificate: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    here = ["127.0.0.2", "127.0.0.1"]  # nobody is at the first one
    names.known = {"mcp.example": ["127.0.0.1"], "login.example": here, "other.example": here}
    async with listening(context) as (port, heads):
        environ = {"SSL_CERT_FILE": str(certificate)}
        reply = await get(f"https://login.example:{port}/x?y=1", server(), environ)
        assert reply.data == {"a": 1}
        assert heads[-1].startswith(b"GET /x?y=1 HTTP/1.1\r\n")
        assert f"\r\nhost: login.example:{port}\r\n" in heads[-1].decode().lower()
        assert names.asked.count("login.example") == 1
        with pytest.raises(MCPUnavailable, match="certificate that is not trusted"):
            await get(f"https://other.example:{port}/x", server(), environ)
