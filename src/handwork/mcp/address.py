"""Where an MCP server of the network is, and what goes along with every request to it: nowhere else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from handwork.config import MCPServerSettings
from handwork.config.credentials import url_origin
from handwork.config.masking import VARIABLE
from handwork.config.user_proxy import is_loopback
from handwork.errors import MCPUnavailable

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_OURS = {
    *("host", "content-length", "content-type", "transfer-encoding", "connection", "accept", "accept-encoding"),
    *("mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "last-event-id"),
}
"""Headers that belong to the protocol: another value would break it, or let two sides read one message differently."""
_HARMLESS = {"user-agent", "accept-language", "x-client", "x-client-name", "x-client-version"}
"""Headers that are no credentials."""


@dataclass(frozen=True, slots=True)
class Address:
    """One server's address. `shown` is it without what is secret in it; `secrets` are those of the headers and the address."""

    name: str
    url: str = field(repr=False)
    shown: str
    origin: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def local(self) -> bool:
        """Whether it is on this machine."""
        return is_loopback(urlsplit(self.url).hostname or "")

    @property
    def own_login(self) -> bool:
        """Whether who we are is configured, so that no token is needed."""
        return "authorization" in self.headers or "@" in urlsplit(self.url).netloc

    @property
    def resource(self) -> str:
        """The address as tokens are asked for it (RFC 8707): no user, no fragment, scheme and host in lower case."""
        parts = urlsplit(self.url)
        place = parts.netloc.rpartition("@")[2].lower()
        return parts._replace(scheme=parts.scheme.lower(), netloc=place, fragment="").geturl()

    @property
    def secrets(self) -> frozenset[str]:
        """What must never be shown: values of headers, with and without their scheme, and a password in the address."""
        values = {value for name, value in self.headers.items() if name not in _HARMLESS}
        password = urlsplit(self.url).password
        return frozenset({*values, *(value.rpartition(" ")[2] for value in values), password or ""} - {""})


def address_of(name: str, settings: MCPServerSettings, environ: Mapping[str, str]) -> Address:
    """The address of a configured server; raises MCPUnavailable (lasting) for one that cannot or should not be asked."""
    url = settings.url.strip()
    shown = shown_url(url)
    try:
        parts = urlsplit(url)
        good = parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and parts.port != 0
        good = good and not re.search(r"[\s\x00-\x1f\x7f\\]", url)
    except ValueError:
        good = False
    if not good:
        raise _useless(
            f"The MCP server {name} has no address that can be asked: {shown}",
            "its url begins with https:// or http://",
        )
    headers = dict(_headers(name, settings.headers, environ))
    address = Address(name, parts._replace(fragment="").geturl(), shown, url_origin(url), headers)
    if parts.scheme.lower() == "http" and not address.local and (address.secrets or address.own_login):
        raise _useless(
            f"Credentials for the MCP server {name} would go to {shown} unencrypted, so nothing was sent",
            "use https://, or a tunnel to this machine (ssh -L) and its http://127.0.0.1 address",
        )
    return address


def shown_url(url: str) -> str:
    """An address for people: without user, password, query and fragment."""
    try:
        parts = urlsplit(url.strip())
        place = parts.netloc.rpartition("@")[2]
        text = parts._replace(netloc=place, query="", fragment="").geturl()
    except ValueError:
        text = url.partition("?")[0].rpartition("@")[2]
    text = "".join(letter if letter.isprintable() else "�" for letter in text)
    return text if len(text) <= 200 else f"{text[:199]}…"


def _headers(name: str, given: Mapping[str, str], environ: Mapping[str, str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for header, written in given.items():
        variable = VARIABLE.fullmatch(written)
        if variable and not environ.get(variable["name"]):
            raise _useless(
                f"The header {header} of the MCP server {name} is to be {written}, and {variable['name']} is not set",
                "set the variable, or change the entry's headers",
            )
        value = variable["before"] + environ[variable["name"]].strip() if variable else written.strip()
        if not _NAME.fullmatch(header) or not _VALUE.fullmatch(value):
            raise _useless(
                f"A header of the MCP server {name} cannot be sent: {header!r}",
                "a header's name and value are one line of ASCII",
            )
        if header.lower() in _OURS:
            raise _useless(
                f"The header {header} of the MCP server {name} belongs to the protocol", "take it out of its headers"
            )
        found[header.lower()] = value
    return found


def _useless(what: str, hint: str) -> MCPUnavailable:
    return MCPUnavailable(what, hint=hint, lasting=True)
