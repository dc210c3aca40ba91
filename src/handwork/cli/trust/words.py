"""What the files of a workspace would do, in words: each with everything in it that has an effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from handwork.cli.trust.server_words import SERVER, mcp_effects
from handwork.cli.trust.values import key_in, listed, named, plain, value_of
from handwork.config.carried import AGENTS, CONFIGS, SERVERS, SKILLS, Carried
from handwork.config.files import toml_layer
from handwork.config.mcp_file import servers_layer
from handwork.errors import ConfigError

_SETS, _ADDS, _FOR = "sets [", "adds the rule: ", "for "
_HARMLESS = 2


@dataclass(frozen=True)
class Meaning:
    """One file, or one folder of a skill, and what it would do."""

    name: str
    effects: tuple[str, ...]
    """The weightiest first, so that none is hidden behind many."""
    changed: bool = False
    weighty: int = 0
    """How many of them do more than set a value or forbid something."""


def meanings(carried: Carried, changed: Iterable[str] = ()) -> list[Meaning]:
    """Everything that a workspace carries, in words that are safe to show. `changed` are the files that are new or different."""
    new = set(changed)
    found = [_meaning(name, carried, name in new) for name in (*CONFIGS, *SERVERS) if name in carried.files]
    agents = [name for name in carried.files if name.startswith(f"{AGENTS}/")]
    found += [Meaning(plain(name), ("an agent with a prompt of its own",), name in new) for name in agents]
    skills: dict[str, list[str]] = {}
    for name in carried.files:
        if name.startswith(f"{SKILLS}/"):
            skills.setdefault("/".join(PurePosixPath(name).parts[:3]), []).append(name)
    for folder, names in skills.items():
        effect = f"a skill: instructions for the agent, {len(names)} file{'s' if len(names) > 1 else ''}"
        found.append(Meaning(plain(folder), (effect,), not new.isdisjoint(names)))
    return found


def _meaning(name: str, carried: Carried, changed: bool) -> Meaning:
    try:
        effects = tuple(_effects(name, carried.files[name]))
    except ConfigError as error:
        what = error.what.removeprefix("Failed to load MCP server config: ")
        effects = (f"cannot be used as it is: {plain(what)}",)
    ordered = tuple(sorted(effects, key=_lightness))
    weighty = sum(_lightness(effect) < _HARMLESS for effect in ordered)
    return Meaning(name, ordered or ("nothing: it is empty",), changed, weighty)


def _lightness(effect: str) -> int:
    """What there is once comes before what there may be many of; what sets or forbids something comes last."""
    if effect.startswith((_SETS, f"{_ADDS}deny ", f"{_ADDS}ask ")):
        return _HARMLESS + effect.startswith(_SETS)
    return int(effect.startswith((_ADDS, _FOR, SERVER)))


def _effects(name: str, data: bytes) -> Iterator[str]:
    file = Path(name)
    layer = servers_layer(file, data)[0] if name in SERVERS else toml_layer(file, data=data)
    for title, table in layer.tables.items():
        if not isinstance(table, Mapping):
            yield f"sets {plain(title)}"
            continue
        yield from _TABLES.get(title, _table)(title, table)


# ---- tables


def _table(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    """A table of which every key is told."""
    for key, value in table.items():
        yield f"{_SETS}{plain(title)}] {plain(key)} = {value_of(key, value)}"


def _llm(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        match key, value:
            case "base_url", str():
                yield f"sends all that is said and read to {plain(value)}"
            case "model", str():
                yield f"chooses the model {plain(value)}"
            case "api_key", str():
                yield f"gives that place {key_in(value)}"
            case "headers", Mapping():
                yield f"sends headers along: {named(value)}"
            case "prices", _:
                yield from _table(title, {key: value})
            case _, Mapping():
                for effect in _llm(f"{title}.{key}", value):
                    yield effect if effect.startswith(_SETS) else f"{_FOR}{plain(key)}: {effect}"
            case _:
                yield from _table(title, {key: value})


def _sandbox(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        match key, value:
            case "backend", "host":
                yield "runs tools on this machine, without a sandbox"
            case "network", True:
                yield "opens the network to tools"
            case "allow_net", list():
                yield f"opens the network to {listed(value)}"
            case "writable", list():
                yield f"lets tools change what is protected: {listed(value)}"
            case _:
                yield from _table(title, {key: value})


def _policy(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        match key, value:
            case "approve", "auto":
                yield "lets calls run without asking you"
            case "rules", list():
                yield from (f"{_ADDS}{plain(str(rule))}" for rule in value)
            case _:
                yield from _table(title, {key: value})


def _browser(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        match key, value:
            case "chrome_instance_path", str():
                yield f"starts this program as the browser: {plain(value)}"
            case "proxy", Mapping():
                yield f"sends the browser through the proxy {plain(str(value.get('server', '')))}"
            case (("wss_url" | "cdp_url"), str()):
                yield f"drives the browser at {plain(value)}"
            case _:
                yield from _table(title, {key: value})


_TABLES = {"llm": _llm, "sandbox": _sandbox, "policy": _policy, "browser": _browser, "mcp": mcp_effects}
