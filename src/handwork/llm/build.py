"""From settings to a Model: which provider, at which address, with which key; and never a key to a host it is not for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from urllib.parse import quote, urlsplit

from handwork.config import Home, LLMSettings
from handwork.config.credentials import provider_at, provider_key, url_origin, withheld_variable
from handwork.config.keys import KeyStore
from handwork.config.masking import masked, without_secrets
from handwork.config.user_proxy import is_loopback
from handwork.errors import ConfigError, NoModelError
from handwork.llm.address import ANTHROPIC, check_url, endpoint, key_headers
from handwork.llm.anthropic.encoder import MessagesEncoder
from handwork.llm.anthropic.models import messages_options
from handwork.llm.anthropic.stream import MessageStream
from handwork.llm.base import Model
from handwork.llm.chat.encoder import ChatEncoder
from handwork.llm.chat.stream import ChatStream
from handwork.llm.choice import WAYS_ON
from handwork.llm.failures import Source
from handwork.llm.local.catalog import LOCAL_MODELS
from handwork.llm.local.engine import open_local_model
from handwork.llm.prices import Prices
from handwork.llm.providers import (
    ALIASES,
    AZURE,
    CUSTOM,
    LOCAL,
    PROVIDERS,
    Provider,
    find_provider,
    options_for,
    split_model,
)
from handwork.llm.retry import Retry
from handwork.llm.transport import TimeLimits, Transport
from handwork.llm.wire import Decoder, Encoder
from handwork.llm.wire_model import WireModel
from handwork.schema import Notify

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OTHER_WIRES = {"aws", "bedrock", "responses"}
_THINK_BETWEEN_CALLS = "interleaved-thinking-2025-05-14"
"""Asks models that think by a budget to think after results as well; later ones do so by themselves."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a model is asked, the key that goes there, and what to do when it is refused ('': nothing special)."""

    provider: Provider
    model: str
    base_url: str
    key: str
    about_key: str = ""


def build_model(
    settings: LLMSettings,
    environ: Mapping[str, str],
    notify: Notify | None = None,
    withheld: str = "",
    keys: KeyStore | None = None,
) -> Model:
    """The model that these settings name, with retries. Opens nothing: the first request does.

    Args:
        environ: keys, base URLs and proxies are looked up here.
        notify: hears what the user should know (a key that goes over an unencrypted connection, or nowhere).
        withheld: what the user was told of a configured key that does not go there; a refusal (401) says it again.
        keys: the stored keys, for a provider whose key is neither configured nor in the environment.

    Raises:
        NoModelError: no model is named, or its provider's key is missing; says which variables and ways there are.
        ConfigError: an unknown provider, a bad base URL, a variable that is not set.
    """
    if not settings.model:
        raise NoModelError("No model is configured", hint=WAYS_ON)
    prefix, _, rest = settings.model.partition(":")
    if prefix == LOCAL and rest and not settings.base_url:
        return _local(rest, environ)
    place = _place(settings, environ, keys)
    headers = _headers(settings, place)
    if (
        place.key
        and place.base_url.startswith("http:")
        and notify
        and not is_loopback(urlsplit(place.base_url).hostname or "")
    ):
        notify(
            "warning",
            f"The key for {url_origin(place.base_url)} goes over an unencrypted connection (http, not https).",
        )
    about_key = place.about_key if _with_key(headers) else withheld or _variable_withheld(place, environ, notify)
    source = Source(place.provider.name, place.model, place.key, tuple(settings.headers.values()), about_key)
    limits = TimeLimits(idle=settings.idle_timeout, total=settings.timeout)
    transport = Transport(_endpoint(settings, place), headers, source, limits, environ)
    if settings.thinking is not None and place.provider.wire != ANTHROPIC and notify:
        notify("info", f"[llm] thinking is for Anthropic's models; {place.provider.name}:{place.model} is sent none")
    encoder, decoder = _codec(settings, place)
    model = WireModel(source, encoder, decoder, transport, Prices(place.model, place.base_url, settings.prices))
    return Retry(model, retries=settings.retries, limit=settings.retry_limit)


def _codec(settings: LLMSettings, place: _Place) -> tuple[Encoder, Callable[[Source], Decoder]]:
    if place.provider.wire == ANTHROPIC:
        limits = (settings.max_tokens, settings.temperature, settings.thinking)
        return MessagesEncoder(messages_options(place.model, *limits)), MessageStream
    options = options_for(place.provider, place.model, settings.max_tokens, settings.temperature)
    return ChatEncoder(options), ChatStream


def _with_key(headers: Mapping[str, str]) -> bool:
    return not {"authorization", "api-key", "x-api-key"}.isdisjoint(name.lower() for name in headers)


def _variable_withheld(place: _Place, environ: Mapping[str, str], notify: Notify | None) -> str:
    """Tell, and return, that the provider's own variable holds a key that is not for this address."""
    provider = PROVIDERS["openai"] if place.provider is CUSTOM else place.provider
    text = withheld_variable(provider, place.base_url, environ)
    if text and notify:
        notify("info", text)
    return text


def _local(name: str, environ: Mapping[str, str]) -> Model:
    return open_local_model(name, Home.from_environ(environ).models)


# ---- provider, model, address, key


def _place(settings: LLMSettings, environ: Mapping[str, str], keys: KeyStore | None = None) -> _Place:
    provider, model = _named(settings)
    base_url = settings.base_url or provider.address(environ)
    if not base_url:
        raise ConfigError(f"The provider {provider.name} needs a base URL: set [llm] base_url or --base-url")
    check_url(base_url)
    own = provider_key(provider, base_url, environ)
    key, about = _configured_key(settings, environ), ""
    if not key and own and own.key:
        key, about = own.key, f"check {provider.variable(environ)}"
    needed = bool(provider.key_variables and own)
    if not key and keys is not None:
        key = _stored_key(keys, provider, base_url, needed=needed)
        about = "that is the stored key: run `handwork setup` and paste another" if key else ""
    if not key and needed:
        raise _without_key(provider, model, keys)
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"The API key for {provider.name} holds characters that no key has; copy it again")
    if about and provider.keys_at:
        about += f"; keys are made at {provider.keys_at}"
    return _Place(provider, model, base_url.rstrip("/"), key, about)


def _stored_key(keys: KeyStore, provider: Provider, base_url: str, *, needed: bool) -> str:
    """The key that was stored for this place; where none is needed, keys that cannot be read are no reason to stop."""
    try:
        return keys.key_for(url_origin(base_url), provider.name)
    except ConfigError:
        if needed:
            raise
        return ""


def _without_key(provider: Provider, model: str, keys: KeyStore | None) -> NoModelError:
    names = " or ".join(provider.key_variables)
    entry = keys.entry(provider.name) if keys else None
    if entry and entry.base_url:
        what = f"{provider.name}:{model} needs a key, and the stored one is for {without_secrets(entry.base_url)}"
        return NoModelError(
            what, hint=f"to ask there, give --base-url {shlex.quote(without_secrets(entry.base_url))}; else set {names}"
        )
    hint = f"set {names}, or run `handwork setup` and paste it"
    if provider.keys_at:
        hint += f" (keys are made at {provider.keys_at})"
    return NoModelError(f"{_meant_local(model)}{provider.name}:{model} needs a key, and there is none", hint=hint)


def _meant_local(model: str) -> str:
    """A question in front of the error, if the name is, or nearly is, that of a model that runs in this process."""
    near = get_close_matches(model.lower(), [facts.name for facts in LOCAL_MODELS], 1, 0.7)
    return f"Did you mean {LOCAL}:{near[0]}, which runs in this process? " if near else ""


def _named(settings: LLMSettings) -> tuple[Provider, str]:
    """Provider and the model's own name. A colon may also belong to the name (`qwen2.5:0.5b`)."""
    if settings.api_type in _OTHER_WIRES:
        raise ConfigError(f"[llm] api_type {settings.api_type!r} is not supported in this version; {_known()}")
    prefix, rest = split_model(settings.model, at_base_url=bool(settings.base_url))
    found = find_provider(prefix)
    if found is not None and rest:
        return found, rest
    if settings.api_type and (typed := find_provider(settings.api_type)):
        return typed, settings.model
    if settings.base_url:
        return provider_at(settings.base_url) or CUSTOM, settings.model
    prefix, colon, rest = settings.model.partition(":")
    if colon and not rest:
        raise ConfigError(f"The model {settings.model!r} names a provider and no model: write {prefix}:NAME")
    if colon:
        near = get_close_matches(prefix.lower(), [*PROVIDERS, *ALIASES, LOCAL], 3, 0.5)
        guess = f"; did you mean {' or '.join(near)}?" if near else f"; {_known()}"
        raise ConfigError(f"Unknown provider {prefix!r} in the model {settings.model!r}{guess} Or give --base-url.")
    return PROVIDERS["openai"], settings.model


def _known() -> str:
    return f"known are {', '.join(PROVIDERS)}, {LOCAL}, and any OpenAI-compatible server by base_url."


def _configured_key(settings: LLMSettings, environ: Mapping[str, str]) -> str:
    """The key of these settings, which is for the place that they name (see config.credentials)."""
    key = settings.api_key.strip()
    if key.startswith("env:"):
        if not (found := environ.get(key.removeprefix("env:"), "").strip()):
            name = masked(key).removeprefix("env:")
            raise ConfigError(
                f"[llm] api_key names the environment variable {name}, which is not set",
                hint="set it; the key itself is written without env:",
            )
        return found
    return key


def _endpoint(settings: LLMSettings, place: _Place) -> str:
    wire = place.provider.wire
    url = endpoint(place.base_url, "messages" if wire == ANTHROPIC else "chat/completions", wire)
    if place.provider is AZURE and settings.api_version:
        url += f"{'&' if '?' in url else '?'}api-version={quote(settings.api_version)}"
    return url


def _anthropic(settings: LLMSettings, place: _Place) -> Iterator[tuple[str, str]]:
    yield from key_headers("" if _with_key(settings.headers) else place.key, ANTHROPIC).items()
    at_its_own = provider_at(place.base_url) is place.provider  # a gateway may refuse what it does not know
    if isinstance(settings.thinking, int) and at_its_own:
        yield "anthropic-beta", _THINK_BETWEEN_CALLS


def _headers(settings: LLMSettings, place: _Place) -> dict[str, str]:
    headers = _written_headers(settings, place)
    if urlsplit(place.base_url).username and "authorization" in map(str.lower, headers):
        raise ConfigError(
            f"The base URL of {url_origin(place.base_url)} holds a user, and there is a key: only one of them can be sent",
            hint="take the user and password out of the address; or the key, if the server wants none",
        )
    return headers


def _written_headers(settings: LLMSettings, place: _Place) -> dict[str, str]:
    for name, value in settings.headers.items():
        if not _HEADER.fullmatch(name) or not value.isprintable():
            raise ConfigError(f"[llm] headers: {name!r} is no header that can be sent; check its name and value")
    headers = {"User-Agent": "handwork", **settings.headers}
    if place.provider.wire == ANTHROPIC:
        given = {name.lower() for name in headers}
        return headers | {name: value for name, value in _anthropic(settings, place) if name not in given}
    if place.provider is AZURE:
        return headers | ({"api-key": place.key} if place.key else {})
    return headers | key_headers(place.key, place.provider.wire)
