"""The network while a list opens one place: what else is reached over the proxy, around it, and by that place."""

from __future__ import annotations

from collections.abc import Mapping

from .row import Check, Row, python, shell
from .world import PRIVATE, World

LISTED: Mapping[str, object] = {"allow_net": ("localhost:@LISTED@", "127.0.0.1:@LISTED@", "listed.test")}

_ASK = """
import os, socket
from urllib.parse import urlsplit
def ask(*parts):
    proxy = urlsplit(os.environ['http_proxy'])
    with socket.create_connection((proxy.hostname, proxy.port), 5) as s:
        s.settimeout(3); said = b''
        for part in parts:
            try:
                s.sendall(part.encode())
                said += s.recv(9999)
            except OSError as error: said += repr(error).encode()
        print(said[:300])
"""
_HOSTS = (
    "127.0.0.1", "LOCALHOST", "localhost.", "127.1", "127.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1.", "0", "0.0.0.0",
    "[::1]", "[::ffff:127.0.0.1]", "[::]", "[0:0:0:0:0:ffff:7f00:1]", "[64:ff9b::7f00:1]", "[::1%25lo]", "ip6-localhost",
    "localhost.localdomain",
    "127.0.0.1%00.listed.test", "127.0.0.1#.listed.test", "listed.test@127.0.0.1", "127.0.0.1\\\\.listed.test", "127。0。0。1", "①27.0.0.1",
)  # fmt: skip


def _reached(_world: World, said: str) -> str:
    return "" if "the listed server" in said else f"the listed place is not reached: {said[:200]}"


def _not_told(world: World, _said: str) -> str:
    return "the listed server was told what lies in the workspace" if PRIVATE.encode() in world.listed.told else ""


def _not_twice(world: World, _said: str) -> str:
    return "a hidden request arrived" if b"hidden" in world.listed.told.splitlines()[-1:] else ""


def _raw(name: str, *parts: str, check: Check | None = None) -> Row:
    """Bytes for the proxy, as they are."""
    return python(name, "ask(" + ", ".join(repr(part) for part in parts) + ")", check)


_HEAD = "Host: 127.0.0.1:@LISTED@\r\n"
_GET = "GET http://127.0.0.1:@LISTED@/ HTTP/1.1\r\n"
_INNER = "GET http://127.0.0.1:@TCP@/hidden HTTP/1.1\r\nHost: 127.0.0.1:@TCP@\r\n\r\n"

ALLOWLIST: list[Row] = [
    python("ask the proxy", _ASK),
    shell("the listed place is reached", "curl -sS -m 9 http://localhost:@LISTED@/", _reached),
    shell("the listed place is reached by the proxy", "curl -sS -m 9 --noproxy '' http://127.0.0.1:@LISTED@/", _reached),
    *(_raw(f"by the proxy to {host}", f"GET http://{host}:@TCP@/ HTTP/1.1\r\nHost: {host}:@TCP@\r\n\r\n") for host in _HOSTS),
    *(_raw(f"by a tunnel to {host}", f"CONNECT {host}:@TCP@ HTTP/1.1\r\nHost: {host}:@TCP@\r\n\r\n", "x") for host in _HOSTS),
    _raw("IPv6 by the proxy", "CONNECT [::1]:@TCP6@ HTTP/1.1\r\nHost: [::1]:@TCP6@\r\n\r\n", "x"),
    _raw("another Host", _GET + "Host: 127.0.0.1:@TCP@\r\n\r\n"),
    _raw("two Hosts", _GET + _HEAD + "Host: 127.0.0.1:@TCP@\r\n\r\n"),
    _raw("a name with a password", "GET http://127.0.0.1:@LISTED@@127.0.0.1:@TCP@/ HTTP/1.1\r\n" + _HEAD + "\r\n"),
    _raw("a backslash", "GET http://127.0.0.1:@TCP@\\@127.0.0.1:@LISTED@/ HTTP/1.1\r\n" + _HEAD + "\r\n"),
    _raw("a port twice", "GET http://127.0.0.1:@LISTED@:@TCP@/ HTTP/1.1\r\n" + _HEAD + "\r\n"),
    _raw("a port beyond", "GET http://127.0.0.1:6553@LISTED@/ HTTP/1.1\r\n" + _HEAD + "\r\n"),
    _raw("another scheme", "GET https://127.0.0.1:@TCP@/ HTTP/1.1\r\n" + _HEAD + "\r\n", "GET ftp://127.0.0.1:@TCP@/ HTTP/1.1\r\n\r\n"),
    _raw("a path alone", "GET / HTTP/1.1\r\nHost: 127.0.0.1:@TCP@\r\n\r\n"),
    _raw("a second request", _GET + _HEAD + "\r\n" + _INNER, check=_not_twice),
    _raw("one hidden in a body",
        _GET.replace("GET", "POST") + _HEAD + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + _INNER,
         check=_not_twice),
    _raw("one behind a chunk",
        _GET.replace("GET", "POST") + _HEAD + "Transfer-Encoding: chunked\r\n\r\n0;x\r\n\r\n" + _INNER, check=_not_twice),
    _raw("two lengths", _GET + _HEAD + "Content-Length: 0\r\nContent-Length: 50\r\n\r\n" + _INNER, check=_not_twice),
    _raw("a line folded", _GET + "Host: 127.0.0.1\r\n :@TCP@\r\n\r\n"),
    _raw("lines without a return", _GET.replace("\r", "") + "Host: 127.0.0.1:@TCP@\n\n"),
    _raw("an upgrade", _GET + _HEAD + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", _INNER, check=_not_twice),
    _raw("a request in a tunnel that is not there", "CONNECT 127.0.0.1:@TCP@ HTTP/1.1\r\n\r\n" + _INNER),
    _raw("a head without an end", "GET http://127.0.0.1:@LISTED@/" + "a" * 90_000),
    _raw("a private network", "CONNECT 10.0.0.1:80 HTTP/1.1\r\n\r\n", "CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n"),
    shell("follow a redirection",
        "curl -sSL -m 5 --noproxy '' http://127.0.0.1:@LISTED@/away; curl -sSL -m 5 http://localhost:@LISTED@/away"),
    python("follow a redirection", "import urllib.request\nurllib.request.urlopen('http://localhost:@LISTED@/away', timeout=5)"),
    shell("curl past the proxy", "curl -sS -m 3 --noproxy '*' http://127.0.0.1:@TCP@/; curl -sS -m 3 --noproxy '*' http://192.0.2.1/"),
    shell("curl by a name that leads elsewhere",
        "curl -sS -m 3 --noproxy '' --resolve listed.test:@TCP@:127.0.0.1 http://listed.test:@TCP@/"),
    shell("curl to another", "curl -sS -m 3 --noproxy '' --connect-to ::127.0.0.1:@TCP@ http://listed.test/"),
    shell("another proxy",
        "curl -sS -m 3 -x http://127.0.0.1:@TCP@ http://listed.test/; curl -sS -m 3 -x socks5h://127.0.0.1:@TCP@ http://listed.test/"),
    python("past the proxy",
        "import socket\nfor port in (@TCP@, @UDP@):\n    try: socket.create_connection(('127.0.0.1', port), 2).send(b'x'); print('LEAK')\n"
           "    except OSError as error: print(error)"),
    python("UDP past the proxy", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @UDP@))"),
    python("an abstract socket past the proxy", "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0@ABSTRACT@'); print('LEAK')"),
    shell("the key of the user's proxy", "env | grep -i proxy; env | grep -q sk-attack && echo LEAK; true"),
    shell("say it to the listed place", "curl -sS -m 9 --data @.env http://localhost:@LISTED@/", _not_told,
          reason="what is sent to a place that the list names is sent: who lists a place that takes data opens a way out"),
]  # fmt: skip
