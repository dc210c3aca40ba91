"""The one place that decides where a key may go: to the origin it was given for, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from handwork.config.layers import Origin
from handwork.config.providers import PROVIDERS, Provider, find_provider, provider_name

_PORTS = {"http": 80, "https": 443}
HOW_TO_GIVE = (
    "to use one there, give HANDWORK_LLM_API_KEY together with HANDWORK_LLM_BASE_URL, "
    "or api_key beside base_url in the same table"
)


@dataclass(frozen=True, slots=True)
class Credential:
    """A key and headers, and the origin that they were given for.

    `origin` is what `origin_of` says of the model and base URL that were known where the key was read; None where none was
    named yet, so that it belongs to the first that is. `key` and `headers` are None where they were not given.
    """

    key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    origin: str | None = None
    sources: Mapping[str, Origin] = field(default_factory=dict)
    """Where the key (`api_key`) and the headers were read, as far as that is known."""


def origin_of(model: str, base_url: str, api_type: str, environ: Mapping[str, str]) -> str | None:
    """Where a request with these settings goes, as scheme://host:port (or the name of a provider without an address).

    None where neither a model nor an address is named.
    """
    if base_url:
        return url_origin(base_url)
    name = provider_name(model, base_url, api_type)
    provider = find_provider(name) if name else None
    if provider is not None and (address := provider.address(environ)):
        return url_origin(address)
    return name or None


def url_origin(url: str) -> str:
    """The origin of an address, in one spelling; what is no address is only itself."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.hostname}:{port}" if parts.hostname else url


def attached(credentials: Iterable[Credential], target: str | None) -> Credential:
    """The key and the headers that go to `target`: of each the last that was given for that very origin."""
    key: str | None = None
    headers: Mapping[str, str] | None = None
    sources: dict[str, Origin] = {}
    for credential in credentials:
        if credential.origin is None or credential.origin == target:
            key = key if credential.key is None else credential.key
            headers = headers if credential.headers is None else credential.headers
            sources |= credential.sources
    return Credential(key, headers, target, sources)


def provider_key(provider: Provider, address: str, environ: Mapping[str, str]) -> Credential | None:
    """The key in the provider's own variable ('' if that is not set); None at an address that is not the provider's own."""
    own = {url_origin(url) for url in (provider.base_url, provider.address(environ)) if url}
    if url_origin(address) not in own:
        return None
    found = (environ.get(name, "").strip() for name in provider.key_variables)
    return Credential(next((key for key in found if key), ""), None, url_origin(address))


def provider_at(address: str, environ: Mapping[str, str] | None = None) -> Provider | None:
    """The provider with keys whose own origin this address has: a bare name of a model there is one of its models.

    `environ`: what a variable there names is a provider's own origin, too.
    """
    keyed = (provider for provider in PROVIDERS.values() if provider.key_variables)
    return next((provider for provider in keyed if provider_key(provider, address, environ or {}) is not None), None)


def withheld_variable(provider: Provider, address: str, environ: Mapping[str, str]) -> str:
    """What to say of a provider's variable that is set and whose key does not go to this address; '' if there is none."""
    found = provider_key(provider, address, environ)
    name = next((name for name in provider.key_variables if environ.get(name, "").strip()), "")
    if found is not None or not name:
        return ""
    own = url_origin(provider.address(environ))
    return f"{name} is not used at {url_origin(address)}: its key is for {own}; {HOW_TO_GIVE}"
