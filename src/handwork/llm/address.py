"""What can be the address of a model's server."""

from __future__ import annotations

from urllib.parse import urlsplit

from handwork.errors import ConfigError


def check_url(url: str) -> None:
    """A base URL that no request can be sent to is found now, not by asking again and again. Raises ConfigError."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or not url.isprintable() or any(letter in url for letter in " \\"):
        shown = url.rpartition("@")[2]  # what stands before may be a password
        raise ConfigError(f"The base URL {shown!r} is no address: expected http(s)://host[:port]/path")
