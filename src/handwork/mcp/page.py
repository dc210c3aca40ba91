"""A page that a server wants its user to open: told such that nobody mistakes where it leads."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from handwork.mcp.cleaning import one_line

_LONGEST = 8_000
_HOST = re.compile(r"[a-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Page:
    """`host` is what a browser asks for, in ASCII; `spelt`: as it stands in the address, if that is otherwise."""

    address: str
    host: str
    spelt: str
    secure: bool
    named: bool
    """Whether the address has a user's name before the host, which people take for the host."""

    def described(self) -> str:
        """The whole address and its host, for a person."""
        lines = [f"Address: {self.address}", f"Host:    {self.host}"]
        if self.spelt:
            lines.append(f"         It is written there as {self.spelt}, whose letters may not be what they look like.")
        if self.named:
            lines.append("         What stands before the @ is not the host.")
        if not self.secure:
            lines.append("         The way there is not encrypted.")
        return "\n".join(lines)


def page_of(address: object) -> Page | None:
    """The page at an address; None for one that is no plain web address: a browser might read it otherwise than it is shown."""
    if not isinstance(address, str) or not 0 < len(address) <= _LONGEST or one_line(address, _LONGEST) != address:
        return None
    if re.search(r"[\\\s<>\"^`{|}]", address):
        return None
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return None
    ascii_host = _in_ascii(host)
    if parts.scheme not in ("http", "https") or not ascii_host:
        return None
    if not address.lower().startswith(f"{parts.scheme}://"):
        return None
    secure = parts.scheme == "https" or ascii_host in ("localhost", "127.0.0.1", "[::1]")
    return Page(address, ascii_host, host if not host.isascii() else "", secure, "@" in parts.netloc)


def _in_ascii(host: str) -> str:
    """The host as it is asked for; '' for none."""
    if ":" in host:
        try:
            return f"[{ipaddress.IPv6Address(host)}]"
        except ValueError:
            return ""
    try:
        made = host.encode("idna").decode().lower()
    except UnicodeError:
        return ""
    return made if _HOST.fullmatch(made) and ".." not in made else ""
