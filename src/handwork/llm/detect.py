"""Model servers: which of the usual ones run on this machine, and which models one has."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

from handwork.config.credentials import provider_at
from handwork.config.providers import LOCAL_SERVERS, PROVIDERS, Provider
from handwork.errors import AuthenticationError, ConfigError, ModelConnectionError, ModelError, ModelNotFoundError
from handwork.llm.address import check_url, endpoint, key_headers
from handwork.llm.aside import begun
from handwork.llm.failures import Source, error_of
from handwork.llm.jsontext import parse
from handwork.llm.plain_get import get

PATIENCE = 0.25
"""Seconds that all servers of this machine have together."""
_LOADED: Mapping[str, str] = {"ollama": "/api/ps", "lmstudio": "/api/v0/models"}
"""Where a server says which of its models are in memory, from the root of its address."""

State = Literal["models", "empty", "locked", "other", "silent"]


@dataclass(frozen=True, slots=True)
class Server:
    """What was found at the usual address of a local server.

    state: `models` it has some, `empty` it is one and has none, `locked` it wants a key, `other` something else answers there,
    `silent` nothing does.
    """

    provider: Provider
    url: str
    state: State
    models: tuple[str, ...] = ()
    loaded: frozenset[str] = frozenset()

    @property
    def best(self) -> str:
        """The model for an agent, by its name at the server; '' if there is none."""
        return best_model(self.models, self.loaded)

    @property
    def where(self) -> str:
        """Its address for people: without the path that all have."""
        return self.url.removesuffix("/v1")


def find_servers(environ: Mapping[str, str], patience: float = PATIENCE) -> tuple[Server, ...]:
    """Ask the usual addresses of all local servers at once; blocks for `patience` at most."""
    deadline = time.monotonic() + patience
    usual = [Server(each := PROVIDERS[name], each.address(environ).rstrip("/"), "silent") for name in LOCAL_SERVERS]
    asked = [begun(partial(_looked, each.provider, each.url, deadline, environ)) for each in usual]
    return tuple(_awaited(found, deadline) or silent for found, silent in zip(asked, usual, strict=True))


def _awaited(found: Future[Server], deadline: float) -> Server | None:
    try:
        return found.result(max(0.0, deadline - time.monotonic()))
    except (TimeoutError, ConfigError):
        return None


def _looked(provider: Provider, url: str, deadline: float, environ: Mapping[str, str]) -> Server:
    try:
        status, body = get(f"{url}/models", {}, deadline, environ)
    except OSError:
        return Server(provider, url, "silent")
    if status in (401, 403):
        return Server(provider, url, "locked")
    models = _names(body) if status == 200 else None
    if models is None:
        return Server(provider, url, "other")
    loaded = frozenset(models) & _loaded(provider, url, deadline, environ)
    return Server(provider, url, "models" if models else "empty", models, loaded)


def _loaded(provider: Provider, url: str, deadline: float, environ: Mapping[str, str]) -> frozenset[str]:
    """The models in memory, where the server tells; a server that does not is as good without."""
    path = _LOADED.get(provider.name)
    if path is None:
        return frozenset()
    try:
        status, body = get(f"{url.removesuffix('/v1')}{path}", {}, deadline, environ)
        told = parse(body) if status == 200 else {}
        rows = (told.get("models") or told.get("data") or ()) if isinstance(told, dict) else ()
        return frozenset(
            str(row.get("name") or row.get("id")) for row in rows if row.get("state", "loaded") == "loaded"
        )
    except (OSError, ValueError, RecursionError, TypeError, AttributeError):
        return frozenset()


# ---- any server's list


def list_models(url: str, key: str, environ: Mapping[str, str], patience: float = 15.0) -> tuple[str, ...]:
    """The models that a server names, Anthropic's own or an OpenAI-compatible one; blocks.

    Args:
        url: the base URL, as in [llm].
        environ: where proxies and SSL_CERT_FILE are looked up.

    Raises:
        ModelError: typed as for a request; ModelNotFoundError where no list of models is.
        ConfigError: an address that is none; a proxy or certificate file that cannot be used.
    """
    check_url(url)
    source = Source("", urlsplit(url).netloc.rpartition("@")[2], key)
    wire = at.wire if (at := provider_at(url, environ)) else "chat"
    try:
        there = endpoint(url, "models", wire)
        status, body = get(there, key_headers(key, wire), time.monotonic() + patience, environ)
    except TimeoutError:
        raise source.error(ModelConnectionError, f"no answer within {patience:g} s") from None
    except OSError as error:
        raise source.error(ModelConnectionError, f"the connection failed: {_reason(error)}") from None
    if status != 200:
        raise _refused(source, status, body)
    models = _names(body)
    if models is None:
        raise source.error(
            ModelNotFoundError, "something answers there, but not with a list of models", "check the address"
        )
    return models


def _refused(source: Source, status: int, body: bytes) -> ModelError:
    if status in (401, 403):
        return source.error(
            AuthenticationError, f"HTTP {status}: the server wants a key, or another one", status=status
        )
    if 300 <= status < 400:
        return source.error(ModelNotFoundError, f"HTTP {status}: redirected", "give the final address")
    return error_of(source, status, body, {})


def _reason(error: OSError) -> str:
    reason = getattr(error, "reason", error)  # URLError wraps the real one
    return str(getattr(reason, "strerror", "") or reason).lower()


def _names(body: bytes) -> tuple[str, ...] | None:
    """The names in an answer of /v1/models that a person can read; None if it is no such answer."""
    try:
        told: Any = parse(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    rows = told.get("data")
    if not rows:
        return () if told.get("object") == "list" and rows in (None, []) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and isinstance(row.get("id"), str) for row in rows):
        return None
    return tuple(dict.fromkeys(row["id"] for row in rows if row["id"].strip() and row["id"].isprintable()))


# ---- which of them


_NO_CHAT = (
    r"(?i)embed|rerank|whisper|tts|speech|voice|ocr|clip|guard|moderation|diffusion|flux|bge-|gte-|e5-|minilm|colbert|nomic|"
    r"transcri|reward|draft|vae|controlnet"
)
_WITH_TOOLS = (
    r"(?i)qwen-?[23]|qwq|gpt-oss|llama-?3\.[1-9]|llama-?4|mistral|ministral|magistral|devstral|codestral|glm-?[4-9]|deepseek-?v[3-9]|"
    r"kimi|minimax|granite-?[34]|command-r|command-a|hermes|nemotron|gemma-?[4-9]|functiongemma|smollm3|lfm2|ernie"
)
_SIZE = re.compile(r"(?<![a-z\d.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z])", re.IGNORECASE)


def best_model(models: Iterable[str], loaded: frozenset[str] = frozenset()) -> str:
    """Of a server's models the one for an agent: one that chats, rather loaded, rather one that calls tools, rather larger."""
    chatting = [name for name in models if not re.search(_NO_CHAT, name)]
    return max(chatting, key=lambda name: (name in loaded, bool(re.search(_WITH_TOOLS, name)), _size(name)), default="")


def _size(name: str) -> float:
    """Thousand millions of parameters, as far as the name tells."""
    sizes = [float(number) * (1 if unit in "bB" else 0.001) for number, unit in _SIZE.findall(name)]
    return max(sizes, default=0.0)
