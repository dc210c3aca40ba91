"""The model that would be used and why, the keys that are there, and the model servers of this machine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from handwork.cli.doctor.finding import Finding, Ground
from handwork.config import LLMSettings, Settings
from handwork.config.key_forms import owners_of
from handwork.config.providers import LOCAL_SERVERS, PROVIDERS, Provider
from handwork.config.user_proxy import is_loopback
from handwork.errors import (
    AuthenticationError,
    ConfigError,
    HandworkError,
    NoModelError,
    PermissionDeniedError,
)
from handwork.llm.choice import Candidate, choose, environment_candidates, model_of, stored_candidates
from handwork.llm.detect import find_servers
from handwork.llm.llm import LLM
from handwork.schema import Message
from handwork.tool.threads import run_in_thread

_MODEL, _KEYS, _SERVERS = "Model", "Keys", "Model servers"
_ASK_SECONDS = 15.0
_FEW_TOKENS = 64
"""Enough for a word from a model that thinks first; some providers refuse less than 16."""


async def model(ground: Ground) -> list[Finding]:
    """Which model the next run would use; with --online it is asked for a word."""
    settings = _within_this_machine(ground)
    table = settings.llm["default"]
    if not table.model and table.base_url and not ground.online and not _is_here(table.base_url):
        text = f"the model is chosen by asking the server at {_shown(table.base_url)}, which only --online does"
        return [Finding("model", _MODEL, "note", text)]
    try:
        chosen = await _in_use(settings)
        llm = LLM("default", _with(settings, chosen.over(table)))
        await run_in_thread(lambda: llm.model)
    except NoModelError as error:
        given = bool(table.model)  # no model at all is a choice still to be made; one that cannot be asked is a mistake
        return [Finding("model", _MODEL, "problem" if given else "warning", error.what, error.hint, essential=given)]
    except HandworkError as error:
        return [Finding("model", _MODEL, "problem", error.what, error.hint, essential=True)]
    found = [*_settled(chosen), *await run_in_thread(lambda: list(_tables(settings)))]
    if ground.online and not chosen.model.startswith("local:"):
        found.append(await _tested("model.answers", _MODEL, settings, chosen, essential=True))
    return found


async def _in_use(settings: Settings) -> Candidate:
    """The model that the next run would use. Raises what `choose` raises."""
    table = settings.llm["default"]
    if table.model:
        return Candidate(table.model, "configured", table.base_url)
    return await run_in_thread(choose, settings, table)


def _settled(chosen: Candidate) -> Iterator[Finding]:
    yield Finding("model", _MODEL, "ok", f"{chosen.place} ({chosen.why})", essential=True)


def _tables(settings: Settings) -> Iterator[Finding]:
    """Each other [llm] table that names a model of its own: whether that could be asked."""
    for name, table in settings.llm.items():
        if name == "default" or not table.model:
            continue
        try:
            _ = LLM(name, settings).model
        except HandworkError as error:
            yield Finding(f"model.{name}", _MODEL, "problem", f"[llm.{name}]: {error.what}", error.hint)
        else:
            yield Finding(f"model.{name}", _MODEL, "ok", f"[llm.{name}]: {table.model}")


async def keys(ground: Ground) -> list[Finding]:
    """Which keys are set and where; never the keys. With --online each is tried with one small request."""
    settings = ground.settings
    there = [*_in_environment(settings.environ), *await run_in_thread(lambda: list(_stored(settings)))]
    if not there:
        fix = "" if any(table.model for table in settings.llm.values()) else "`handwork setup` stores one"
        return [Finding("keys", _KEYS, "note", f"no provider's key is set or stored{f'; {fix}' if fix else ''}")]
    if not ground.online:
        text = "keys are not tried out: `handwork doctor --online` does, with one small request each"
        return [*there, Finding("keys.untested", _KEYS, "note", text)]
    candidates = list(environment_candidates(settings))
    with contextlib.suppress(ConfigError):  # which the finding about the stored keys says
        candidates += await run_in_thread(lambda: list(stored_candidates(settings)))
    others = {_asked(each): each for each in reversed(candidates)}
    with contextlib.suppress(HandworkError):
        others.pop(_asked(await _in_use(settings)), None)  # that one is tried as the model
    tests = (_tested(f"keys.{each.model}", _KEYS, settings, each) for each in reversed(others.values()))
    return [*there, *await asyncio.gather(*tests)]


def _asked(candidate: Candidate) -> tuple[str, str]:
    return candidate.model, candidate.base_url


def _in_environment(environ: Mapping[str, str]) -> Iterator[Finding]:
    for provider in PROVIDERS.values():
        if variable := provider.variable(environ):
            name = provider.title or provider.name
            doubt = _doubt(environ[variable], provider)
            if doubt:
                fix = f"copy the key again, without anything around it, into {variable}"
                yield Finding(f"keys.{provider.name}", _KEYS, "warning", f"{variable} ({name}) {doubt}", fix)
            else:
                yield Finding(f"keys.{provider.name}", _KEYS, "ok", f"{variable} is set ({name})")


def _doubt(key: str, provider: Provider) -> str:
    """What is odd about a key, without a letter of it."""
    if key != key.strip():
        return "has a space or a line break at its end or beginning"
    if key[0] in "\"'" or not key.isascii() or not key.isprintable() or " " in key:
        return "holds characters that no key has"
    owners = owners_of(key)
    if owners and provider not in owners:
        return f"looks like a key of {owners[0].title or owners[0].name}"
    return ""


def _stored(settings: Settings) -> Iterator[Finding]:
    try:
        entries = settings.keys.entries()
    except ConfigError as error:
        yield Finding("keys.stored", _KEYS, "problem", error.what, error.hint)
        return
    for entry in entries:
        shown = _shown(entry.name) if "://" in entry.name else entry.name
        id, text = f"keys.stored.{shown}", f"a key of {shown} is stored in {entry.place}"
        if (asked := model_of(entry, settings)) is None:
            fix = "`handwork setup` stores it anew, or removes it"
            yield Finding(id, _KEYS, "warning", f"{text}, and names no model that can be asked", fix)
            continue
        where = f", for {_shown(asked.base_url)}" if asked.base_url and shown == entry.name else ""
        yield Finding(id, _KEYS, "ok", text + where)
    for notice in settings.keys.take_notices():
        yield Finding("keys.stored.notice", _KEYS, "warning", notice)


async def _tested(id: str, group: str, settings: Settings, chosen: Candidate, *, essential: bool = False) -> Finding:
    """Ask a model for one word."""
    table = LLMSettings(model=chosen.model, base_url=chosen.base_url)
    if chosen.why == "configured":
        table = settings.llm["default"]
    quick = {"max_tokens": _FEW_TOKENS, "retries": 0, "timeout": _ASK_SECONDS, "idle_timeout": _ASK_SECONDS}
    llm = LLM("default", _with(settings, table.model_copy(update=quick)))
    try:
        await llm.ask([Message.user_message("Answer with the word: ready")])
    except (AuthenticationError, PermissionDeniedError, ConfigError) as error:
        return Finding(id, group, "problem", error.what, error.hint, essential)
    except HandworkError as error:
        return Finding(id, group, "problem" if essential else "warning", error.what, error.hint, essential)
    finally:
        await llm.aclose()
    return Finding(id, group, "ok", f"{chosen.model} answered: the key and the way to it work", essential=essential)


def servers(ground: Ground) -> Iterator[Finding]:
    """The model servers that run on this machine."""
    silent = True
    for server in find_servers(_within_this_machine(ground).environ):
        name, where = server.provider.title or server.provider.name, _shown(server.where)
        id = f"servers.{server.provider.name}"
        silent = silent and server.state == "silent"
        match server.state:
            case "models":
                count = f"{len(server.models)} model{'' if len(server.models) == 1 else 's'}"
                best = f", such as {server.best}" if server.best else ", none of which chats"
                yield Finding(id, _SERVERS, "ok", f"{name} runs at {where} with {count}{best}")
            case "empty":
                fix = "`ollama pull qwen3`" if server.provider.name == "ollama" else f"load a model in {name}"
                yield Finding(id, _SERVERS, "warning", f"{name} runs at {where} and has no model", fix)
            case "locked":
                fix = f"give its key: [llm] base_url and api_key, or `handwork setup` with {where}"
                yield Finding(id, _SERVERS, "warning", f"a server at {where} wants a key", fix)
            case "other":
                yield Finding(id, _SERVERS, "note", f"something at {where} is no model server")
            case "silent":
                pass
    if silent:
        ports = ", ".join(PROVIDERS[name].title or name for name in LOCAL_SERVERS)
        yield Finding("servers", _SERVERS, "note", f"none runs here (looked for {ports})")


def _within_this_machine(ground: Ground) -> Settings:
    """Without --online, an address that a variable gives a local server is left out if it is another machine's."""
    settings = ground.settings
    if ground.online:
        return settings
    names = [PROVIDERS[name].base_url_variable for name in LOCAL_SERVERS]
    afar = {name for name in names if name and (url := settings.environ.get(name)) and not _is_here(url)}
    environ = {name: value for name, value in settings.environ.items() if name not in afar}
    return settings.model_copy(update={"environ": environ})


def _is_here(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


def _with(settings: Settings, table: LLMSettings) -> Settings:
    return settings.model_copy(update={"llm": {**settings.llm, "default": table}})


def _shown(url: str) -> str:
    """An address for people: without what may be a password or a key in it."""
    before, found, rest = url.partition("://")
    host = (rest if found else before).partition("?")[0].rpartition("@")[2]
    return f"{before}://{host}" if found else host
