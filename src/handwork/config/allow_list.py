"""The hosts that [sandbox] allow_net and --allow-net name: what may stand there, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from handwork.config.host_names import host_matches, host_pattern

_EXAMPLES = "write a host alone, as in example.com, *.example.com, example.com:443 or 192.0.2.7"
_ALL = "every host is allowed by --net alone; * stands for what is below a name, as in *.example.com"
_TWO_READINGS = frozenset("ßς\u200c\u200d")
"""Letters that older and newer rules write differently in a name of the net, so that two hosts may be meant."""


def allowed_host(text: str) -> str:
    """An entry in its one spelling. Raises ValueError, which says what to write instead."""
    if text.strip().partition(":")[0] == "*":
        raise ValueError(_ALL)
    if any(sign in text for sign in "/@%") or "*" in text.strip().removeprefix("*."):
        raise ValueError(_EXAMPLES)
    if _TWO_READINGS & set(text):
        raise ValueError("it can be read as two names: write the one that is meant with xn--")
    try:
        return host_pattern(text)
    except ValueError:
        raise ValueError(_EXAMPLES) from None


def _checked(text: str) -> str:
    try:
        return allowed_host(text)
    except ValueError as error:
        shown = ascii(text if len(text) <= 80 else text[:80] + "…")
        raise PydanticCustomError("host", "{text} names no host", {"text": shown, "hint": str(error)}) from None


AllowedHost = Annotated[str, AfterValidator(_checked)]
"""An entry of an allow-list, in its one spelling."""


def is_listed(entries: Sequence[str], host: str, port: int) -> bool:
    """Whether an allow-list names this host (in its one spelling) and port."""
    return any(host_matches(entry, host, port) for entry in entries)


def place(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_address(host: str) -> bool:
    """Whether a host in its one spelling is an IP address and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
