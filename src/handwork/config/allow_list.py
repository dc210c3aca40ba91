"""The hosts that [sandbox] allow_net and --allow-net name: what may stand there, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from handwork.config.host_names import host_matches, host_pattern

_EXAMPLES = "write a host alone, as in example.com, *.example.com, example.com:443 or 192.0.2.7"


def allowed_host(text: str) -> str:
    """An entry in its one spelling. Raises ValueError, which says why it names no host."""
    if "://" in text or "/" in text or "@" in text:
        raise ValueError(_EXAMPLES)
    if text.strip().startswith("*") and not text.strip().startswith("*."):
        raise ValueError(
            "every host is allowed by --net alone; here * stands only for what is below a name, *.example.com"
        )
    return host_pattern(text)


def _checked(text: str) -> str:
    try:
        return allowed_host(text)
    except ValueError as error:
        shown = ascii(text if len(text) <= 80 else text[:80] + "…")
        raise PydanticCustomError(
            "allow_net", "{text} names no host: {why}", {"text": shown, "why": str(error)}
        ) from None


AllowedHost = Annotated[str, AfterValidator(_checked)]


def is_listed(entries: Sequence[str], host: str, port: int) -> bool:
    """Whether an allow-list names this host (in its one spelling) and port."""
    return any(host_matches(entry, host, port) for entry in entries)


def place(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_address(host: str) -> bool:
    """Whether a host in its one spelling is an IP address and no name."""
    return ":" in host or host.rpartition(".")[2].isdigit()
