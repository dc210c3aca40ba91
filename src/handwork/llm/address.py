"""What can be the address of a model's server, and what is asked below it."""

from __future__ import annotations

from urllib.parse import urlsplit

from handwork.errors import ConfigError

ANTHROPIC = "anthropic"
"""The wire of Anthropic's Messages API, as providers name it."""
_VERSION = "2023-06-01"


def endpoint(base_url: str, path: str, wire: str) -> str:
    """Where `path` is on a wire, below a base URL that may name the place of one already; a query stays behind it."""
    base, mark, query = base_url.partition("?")
    base = base.rstrip("/").removesuffix("/chat/completions")
    if wire == ANTHROPIC:  # its base URLs end before the version, those for OpenAI's wire behind it
        base = f"{base.removesuffix('/messages').removesuffix('/v1')}/v1"
    return f"{base.rstrip('/')}/{path}{mark}{query}"


def key_headers(key: str, wire: str) -> dict[str, str]:
    """The headers in which a key is sent on a wire, and the version of it."""
    if wire == ANTHROPIC:
        return {"anthropic-version": _VERSION} | ({"x-api-key": key} if key else {})
    return {"Authorization": f"Bearer {key}"} if key else {}


def check_url(url: str) -> None:
    """A base URL that no request can be sent to is found now, not by asking again and again. Raises ConfigError."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
        (parts.hostname or "").encode("idna")  # a part of a name may not be empty, nor longer than 63 letters
    except ValueError:
        good = False
    if not good or not url.isprintable() or any(letter in url for letter in " \\"):
        shown = url.partition("?")[0].rpartition("@")[
            2
        ]  # what stands before may be a password, what stands behind a key
        raise ConfigError(f"The base URL {shown!r} is no address: expected http(s)://host[:port]/path")
