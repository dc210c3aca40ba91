"""Names of hosts as rules write them and as programs ask for them: one spelling for each."""

from __future__ import annotations

import ipaddress
import re
import socket

_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443, "ftp": 21, "ssh": 22, "git": 9418}
_LONGEST = 253
_ADDRESS = re.compile(r"(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+)){0,3}")
"""An IPv4 address in any of the spellings that a resolver takes: 127.1, 0x7f.1, 2130706433."""
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})*")


def host_pattern(text: str) -> str:
    """A rule's host in its one spelling: `*`, `host`, `*.host`, each with `:port` behind it if one is meant. Raises ValueError."""
    host, port = _parted(text)
    ending = f":{port}" if port is not None else ""
    if host == "*":
        return f"*{ending}"
    if host.startswith("*."):
        name = normal_host(host[2:])
        if ":" in name or _ADDRESS.fullmatch(name):
            raise ValueError("an address has no names below it")
        return f"*.{name}{ending}"
    name = normal_host(host)
    return (f"[{name}]" if ":" in name else name) + ending


def host_matches(pattern: str, host: str, port: int | None) -> bool:
    """Whether a place (in its one spelling: `normal_host`) is one that a pattern (`host_pattern`) names.

    `*.example.com` names what is below example.com, not example.com itself; a pattern without a port names all of them.
    """
    named, wanted = _parted(pattern)
    if wanted is not None and wanted != port:
        return False
    if named == "*":
        return True
    return host.endswith(named[1:]) if named.startswith("*.") else host == named


def place_of(resource: str) -> tuple[str, int | None]:
    """The host and port of an address (a URL, `host:port` or `host`), the port None if nobody knows it. Raises ValueError."""
    scheme, separator, rest = resource.partition("://")
    text = re.split(r"[/?#\\]", rest if separator else resource, maxsplit=1)[0].rpartition("@")[2]
    host, port = _parted(text)
    if port is None and separator:
        port = _PORTS.get(scheme.lower())
    return normal_host(host), port


def normal_host(text: str) -> str:
    """A host's one spelling: lower case, no dot at its end, ASCII, an address as numbers. Raises ValueError."""
    host = text.strip().rstrip(".").lower()
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if len(host) > _LONGEST:
        raise ValueError("it is longer than any name")
    if ":" in host:
        address = ipaddress.IPv6Address(host.partition("%")[0])
        return str(address.ipv4_mapped or address)
    if not host.isascii():
        host = host.encode("idna").decode().lower()
    if _ADDRESS.fullmatch(host):
        try:
            return str(ipaddress.IPv4Address(socket.inet_aton(host)))
        except OSError:
            raise ValueError(f"{text!r} is no address") from None
    if not _NAME.fullmatch(host):
        raise ValueError(f"{text!r} is no name of a host")
    return host


def _parted(text: str) -> tuple[str, int | None]:
    """Host and port; an IPv6 address has brackets if a port follows."""
    text = text.strip()
    host, colon, port = text.rpartition(":")
    if not colon or (":" in host and not host.endswith("]")) or text.endswith("]"):
        return text[1:-1] if text.startswith("[") and text.endswith("]") else text, None
    if port == "*":
        return host, None
    if not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65536 or len(port) > 5:
        raise ValueError(f"{port!r} is no port")
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host, int(port)
