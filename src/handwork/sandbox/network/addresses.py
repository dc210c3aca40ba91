"""Which IP addresses are part of the public net, what the others are, and why one may not be reached, in words."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from handwork.config.allow_list import is_address

_UNLISTED = "it is not in the allow-list (--allow-net)"
_MACHINE = "this machine itself"
_PRIVATE = "a private network"
_LINK = "the local link, where clouds hand out their keys"
_SPECIAL = "a range for special use"

# From IANA's registries of special-purpose addresses, and what clouds put elsewhere.
_FOUR = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", _MACHINE),
        ("127.0.0.0/8", _MACHINE),
        ("10.0.0.0/8", _PRIVATE),
        ("172.16.0.0/12", _PRIVATE),
        ("192.168.0.0/16", _PRIVATE),
        ("100.64.0.0/10", _PRIVATE),
        ("169.254.0.0/16", _LINK),
        ("168.63.129.16/32", _LINK),
        ("192.0.0.0/24", _SPECIAL),
        ("192.0.2.0/24", _SPECIAL),
        ("192.31.196.0/24", _SPECIAL),
        ("192.52.193.0/24", _SPECIAL),
        ("192.88.99.0/24", _SPECIAL),
        ("192.175.48.0/24", _SPECIAL),
        ("198.18.0.0/15", _SPECIAL),
        ("198.51.100.0/24", _SPECIAL),
        ("203.0.113.0/24", _SPECIAL),
        ("224.0.0.0/3", _SPECIAL),
    )
)
_GLOBAL_SIX = IPv6Network("2000::/3")
_SIX = tuple(
    (IPv6Network(network), what)
    for network, what in (
        ("::/128", _MACHINE),
        ("::1/128", _MACHINE),
        ("fc00::/7", _PRIVATE),
        ("fec0::/10", _PRIVATE),
        ("fe80::/10", _LINK),
        ("2001::/23", _SPECIAL),
        ("2001:db8::/32", _SPECIAL),
        ("2620:4f:8000::/48", _SPECIAL),
        ("3fff::/20", _SPECIAL),
    )
)
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TRANSLATED = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_ISATAP = 0x5EFE


def not_listed(host: str, name: str = "") -> str:
    """Why a place that no list names may not be reached; `name` leads to it. Says what an unusual address needs."""
    if not is_address(host) or not (what := unusual(host)):
        return _UNLISTED
    if name:
        return f"{name} leads to {host}, which is {what}, so its address must be allowed, too (--allow-net {host})"
    return f"{_UNLISTED}; the address is {what}"


def unusual(address: str) -> str:
    """'' for an address of the public net, else what it is: an address that holds another one is what that one is."""
    found = ip_address(address)
    return _four(found) if isinstance(found, IPv4Address) else _six(found)


def _four(address: IPv4Address) -> str:
    return next((what for network, what in _FOUR if address in network), "")


def _six(address: IPv6Address) -> str:
    for network, what in _SIX:
        if address in network:
            return what
    value = int(address)
    if address.ipv4_mapped or address in _TRANSLATED or address in _COMPATIBLE:
        return _four(IPv4Address(value & 0xFFFFFFFF))
    if address in _SIX_TO_FOUR:
        return _four(IPv4Address(value >> 80 & 0xFFFFFFFF))
    if value >> 32 & 0xFDFFFFFF == _ISATAP:
        return _four(IPv4Address(value & 0xFFFFFFFF))
    return "" if address in _GLOBAL_SIX else _SPECIAL
