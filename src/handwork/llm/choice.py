"""Which model is used where none is named: the first found, in one order, with a line that says which and why."""

from __future__ import annotations

import importlib.util
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from handwork.config import LLMSettings, Settings
from handwork.config.credentials import provider_at, url_origin
from handwork.config.key_forms import owners_of
from handwork.config.keys import StoredKey
from handwork.config.masking import without_secrets
from handwork.config.providers import LOCAL, PROVIDERS, Provider, find_provider
from handwork.errors import ConfigError, HandworkError, NoModelError
from handwork.llm.detect import Server, best_model, find_servers, list_models
from handwork.llm.local.catalog import LOCAL_MODELS

WAYS_ON = (
    "run `handwork setup`; or set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's variable; or give --model "
    "provider:model, with --base-url for a server of yours; `handwork model fetch smollm2-135m` gets a small one"
)


_STORED = "its key is stored"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that could be used, as [llm] would name it, and why it is there. Without a base URL it is at its provider's."""

    model: str
    why: str
    base_url: str = ""

    @property
    def place(self) -> str:
        """The model for people, with its address where that has to be said."""
        return f"{self.model} at {without_secrets(self.base_url)}" if self.base_url else self.model

    def notice(self) -> str:
        """The line that a person reads."""
        return f"Model: {self.place} ({self.why})"

    def over(self, table: LLMSettings) -> LLMSettings:
        """A table that names no model, with this one."""
        return table.model_copy(update={"model": self.model, "base_url": self.base_url})


def choose(settings: Settings, table: LLMSettings) -> Candidate:
    """The model for a table that names none; blocks for a quarter of a second where servers have to be looked for.

    Raises:
        NoModelError: nothing was found; the hint names the ways on.
        ConfigError: the stored keys cannot be read, and nothing that comes before them was found.
        ModelError: a base URL was given, and that server does not tell its models.
    """
    if table.base_url:
        return _at(table, settings)
    if _is_half(table):
        return _with_own_key(table)
    for candidates in (environment_candidates, stored_candidates):
        if (first := next(candidates(settings), None)) is not None:
            return first
    servers = find_servers(settings.environ)
    found = next(server_candidates(servers), None) or next(fetched_candidates(settings), None)
    if found is None:
        raise NoModelError(_nothing(servers), hint=_ways_on(settings))
    return found


def _ways_on(settings: Settings) -> str:
    """What can be done, first of all with a configuration file that lies right there."""
    file = settings.unread_config
    return f"give --config {shlex.quote(str(file))}, which is not read by itself; or {WAYS_ON}" if file else WAYS_ON


@dataclass(frozen=True, slots=True)
class Survey:
    """All that was found at each place, in the order in which the places count.

    unfinished: what is configured names no model and tells none either; it stops the search.
    problem: the stored keys cannot be read.
    idle: of stored keys that lead to no model, what to say.
    """

    configured: tuple[Candidate, ...]
    unfinished: str
    environment: tuple[Candidate, ...]
    stored: tuple[Candidate, ...]
    problem: str
    idle: tuple[str, ...]
    servers: tuple[Server, ...]
    fetched: tuple[Candidate, ...]

    @property
    def running(self) -> tuple[Candidate, ...]:
        return tuple(server_candidates(self.servers))

    @property
    def winner(self) -> Candidate | None:
        """The model that is used where no command line names another."""
        if self.unfinished:
            return None
        places = (self.configured, self.environment, self.stored, self.running, self.fetched)
        return next((place[0] for place in places if place), None)


def survey(settings: Settings, configured: str = "configured") -> Survey:
    """Look at every place; blocks for a quarter of a second. The keys of a keyring are not read.

    `configured` says where a configured model was named.
    """
    first, unfinished = _configured(settings, configured)
    problem = ""
    stored: tuple[Candidate, ...] = ()
    idle: tuple[str, ...] = ()
    try:
        stored = tuple(stored_candidates(settings))
        idle = tuple(_idle(each) for each in settings.keys.entries() if model_of(each, settings) is None)
    except ConfigError as error:
        problem = str(error)
    return Survey(
        first,
        unfinished,
        tuple(environment_candidates(settings)),
        stored,
        problem,
        idle,
        find_servers(settings.environ),
        tuple(fetched_candidates(settings)),
    )


def _configured(settings: Settings, where: str) -> tuple[tuple[Candidate, ...], str]:
    """The configured model; or what half a table leads to, or why it leads nowhere."""
    table = settings.llm["default"]
    if table.model:
        return (Candidate(table.model, where, table.base_url),), ""
    if not _is_half(table):
        return (), ""
    try:
        return (choose(settings, table),), ""
    except HandworkError as error:
        return (), str(error)


def _is_half(table: LLMSettings) -> bool:
    """Whether a table without a model says something that is for one place only."""
    return bool(table.base_url or table.api_key or table.api_type or table.headers)


def environment_candidates(settings: Settings) -> Iterator[Candidate]:
    """The default models of the providers whose key is in the environment, in the order of the providers."""
    for provider in PROVIDERS.values():
        if provider.default_model and (variable := provider.variable(settings.environ)):
            model = f"{provider.name}:{provider.default_model}"
            yield Candidate(model, f"{variable} is set", _moved(provider, settings.environ))


def _moved(provider: Provider, environ: Mapping[str, str]) -> str:
    """The address that a variable gives a provider; '' where it is at its own."""
    now = provider.address(environ)
    return "" if now == provider.base_url else now


def stored_candidates(settings: Settings) -> Iterator[Candidate]:
    """The models of the stored keys, the newest first. Raises ConfigError if the keys cannot be read."""
    for entry in reversed(settings.keys.entries()):
        if (model := model_of(entry, settings)) is not None:
            yield model


def model_of(entry: StoredKey, settings: Settings) -> Candidate | None:
    """The model that a stored key is for, at the address that it was stored for; None if its provider is unknown by now.

    A variable that moved the provider while the key was stored may be gone since, or name another place.
    """
    if "://" in entry.name:
        return Candidate(entry.model, _STORED, entry.base_url) if entry.model else None
    provider = find_provider(entry.name)
    model = entry.model or (provider.default_model if provider else "")
    if provider is None or not model:
        return None
    name = f"{provider.name}:{model}"
    if entry.fits(provider.address(settings.environ)):
        return Candidate(name, _STORED, _moved(provider, settings.environ))
    if not entry.base_url:
        return None
    variable = provider.base_url_variable
    aside = f"; {variable} names another address" if variable and settings.environ.get(variable) else ""
    return Candidate(name, f"{_STORED} for that address{aside}", entry.base_url)


def _idle(entry: StoredKey) -> str:
    """What to say of a stored key that leads to no model."""
    name = without_secrets(entry.name)
    return f"the stored key of {name} names no model that can be asked: `handwork setup` stores or removes it"


def server_candidates(servers: tuple[Server, ...]) -> Iterator[Candidate]:
    """The best model of each running local server."""
    for server in servers:
        if server.best:
            yield Candidate(
                f"{server.provider.name}:{server.best}", f"{server.provider.title} runs here, at {server.where}"
            )


def fetched_candidates(settings: Settings) -> Iterator[Candidate]:
    """The models for this process whose file is here and whose runtime is installed."""
    if importlib.util.find_spec("xllamacpp") is None:
        return
    for facts in LOCAL_MODELS:
        if (settings.home.models / facts.file).is_file():
            yield Candidate(f"{LOCAL}:{facts.name}", "demo-sized; fetched earlier, and nothing else was found")


def _nothing(servers: tuple[Server, ...]) -> str:
    """What was found instead of a model: nothing, or a server that has none."""
    empty = next((server for server in servers if server.state == "empty"), None)
    if empty is None:
        return "No model is configured, no key is set and no model server runs here"
    return f"{empty.provider.title} runs at {empty.where} and has no model yet; nothing else was found"


# ---- half a table


def _at(table: LLMSettings, settings: Settings) -> Candidate:
    """A base URL without a model: a provider's own means its default, any other server is asked what it has."""
    if (provider := provider_at(table.base_url)) and provider.default_model:
        model = f"{provider.name}:{provider.default_model}"
        return Candidate(model, f"the address is {provider.title}'s own", table.base_url)
    key = table.api_key.strip()
    if not key or key.startswith("env:"):
        key = settings.keys.key_for(url_origin(table.base_url), "")
    models = list_models(table.base_url, key, settings.environ)
    best = best_model(models)
    if not best:
        where = without_secrets(table.base_url)
        raise NoModelError(f"The server at {where} names no model that chats", hint="name one with --model")
    return Candidate(best, "the only one there" if len(models) == 1 else f"one of {len(models)} there", table.base_url)


def _with_own_key(table: LLMSettings) -> Candidate:
    """A key without a model goes to nobody but the provider whose form it has."""
    owners = owners_of(table.api_key.strip())
    if len(owners) == 1 and owners[0].default_model and not table.api_type:
        return Candidate(f"{owners[0].name}:{owners[0].default_model}", f"api_key is one of {owners[0].title}'s")
    given = next(name for name in ("api_type", "api_key", "headers") if getattr(table, name))
    raise NoModelError(f"[llm] {given} is set and no model is named", hint="set [llm] model to provider:model")
