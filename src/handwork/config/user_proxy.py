"""The proxies that the user's own environment names: the one for an address, and what programs inside may know of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from handwork.errors import ConfigError

_LOOPBACK = re.compile(r"127(?:\.\d+){1,3}", re.ASCII)
"""As numbers only: 127.example.org is a name like others."""
_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for this address; None for loopback and for what NO_PROXY lists.

    Raises ConfigError for one that is no address.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host):
        return None

    def variable(name: str) -> str:
        return (environ.get(name.lower()) or environ.get(name.upper()) or "").strip()

    proxy = variable(f"{parts.scheme}_proxy") or variable("all_proxy")
    if not proxy or _bypassed(host, parts.port, variable("no_proxy")):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    try:
        split = urlsplit(proxy)
        whole = bool(split.hostname) and not any(map(str.isspace, proxy))
        good = whole and split.port != 0
        spoken = split.scheme in ("http", "https")
    except ValueError:
        good = False
    if good and not spoken:
        raise ConfigError(
            f"The proxy for {host} is one of {split.scheme}, which is not spoken here", hint="name one of http or https"
        )
    if not good:
        raise ConfigError(
            f"The proxy for {host} is no address", hint=f"expected http://host:port in {parts.scheme.upper()}_PROXY"
        )
    return proxy


def handed_on(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """What programs that have the whole network need to know of the user's proxies, in both spellings; and the names of the
    variables that hold a user's name or password, which stay here."""
    given, kept = dict[str, str](), list[str]()
    for name in _VARIABLES:
        value = (environ.get(name) or environ.get(name.upper()) or "").strip()
        if "@" in value and name != "no_proxy":
            kept.append(name.upper())
        elif value:
            given |= {name: value, name.upper(): value}
    return given, kept


def _bypassed(host: str, port: int | None, no_proxy: str) -> bool:
    """NO_PROXY is a list of host names that also stand for what is below them, `*`, and host:port."""
    for entry in no_proxy.lower().split(","):
        name = entry.strip().lstrip("*").lstrip(".")
        if entry.strip() == "*" or (name and (name in (host, f"{host}:{port}") or host.endswith(f".{name}"))):
            return True
    return False


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine."""
    return (
        host == "localhost"
        or host.endswith(".localhost")
        or host in ("::1", "0.0.0.0")
        or bool(_LOOPBACK.fullmatch(host))
    )
