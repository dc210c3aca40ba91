"""Where a host that a server named for logins leads to: the addresses that may be connected to, looked up once and kept to."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from handwork.config.allow_list import is_address
from handwork.errors import MCPUnavailable
from handwork.mcp.address import Address, shown_url
from handwork.mcp.failing import shown
from handwork.sandbox.network.addresses import unusual
from handwork.sandbox.network.refusal import Refusal
from handwork.sandbox.network.resolve import resolve


async def places_of(url: str, address: Address) -> Sequence[str]:
    """The IP addresses to connect to for a URL, the best first.

    A name leads anywhere its owner wants, also to this machine and to what only this machine can reach. Raises MCPUnavailable
    (lasting) if one of its addresses is no part of the public net, and the MCP server is not in such a place itself.
    """
    host = urlsplit(url).hostname or ""
    if is_address(host):  # as it stands it was looked at before
        return [host]
    try:
        found = await resolve(host)
    except (OSError, Refusal) as error:
        raise MCPUnavailable(
            f"{shown_url(url)}, where the MCP server {address.name} sends for logins, cannot be found: "
            f"{shown(getattr(error, 'strerror', None) or str(error))}",
            hint="check the network",
        ) from None
    kinds = {what: place for place in found if (what := unusual(place))}
    if kinds and not kinds.keys() <= await _kinds_of(address):
        what, place = next(iter(kinds.items()))
        raise MCPUnavailable(
            f"The MCP server {address.name} sends for logins to {shown(shown_url(url))}, and that name leads to {place}, which is "
            f"{what}, so it was not asked",
            hint="tell who runs the server; nothing was sent there",
            lasting=True,
        )
    return found


async def _kinds_of(address: Address) -> set[str]:
    """What the server's own addresses are; nothing if one of them is public, or none is found."""
    host = urlsplit(address.url).hostname or ""
    try:
        kinds = {unusual(place) for place in ([host] if is_address(host) else await resolve(host))}
    except (OSError, Refusal):
        return set()
    return set() if "" in kinds else kinds
