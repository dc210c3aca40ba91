"""What the files of a workspace would do, in words: each with everything in it that has an effect."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from handwork.cli.clean import show_exactly
from handwork.config.carried import AGENTS, CONFIGS, SERVERS, SKILLS, Carried
from handwork.config.files import toml_layer
from handwork.config.masking import VARIABLE
from handwork.config.mcp_file import servers_layer
from handwork.errors import ConfigError

_LONGEST = 1000
"""Characters of one value; what is longer is cut, and said to be."""
_MOST = 40
"""Files, servers or values of one kind that are named."""
_SETS, _ADDS, _FOR, _SERVER = "sets [", "adds the rule: ", "for ", "the server "
_HARMLESS = 2
_SECRET = ("api_key", "password", "VNC_password")


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
    found += [Meaning(_plain(name), ("an agent with a prompt of its own",), name in new) for name in agents]
    skills: dict[str, list[str]] = {}
    for name in carried.files:
        if name.startswith(f"{SKILLS}/"):
            skills.setdefault("/".join(PurePosixPath(name).parts[:3]), []).append(name)
    for folder, names in skills.items():
        effect = f"a skill: instructions for the agent, {len(names)} file{'s' if len(names) > 1 else ''}"
        found.append(Meaning(_plain(folder), (effect,), not new.isdisjoint(names)))
    return found


def _meaning(name: str, carried: Carried, changed: bool) -> Meaning:
    try:
        effects = tuple(_effects(name, carried.files[name]))
    except ConfigError as error:
        what = error.what.removeprefix("Failed to load MCP server config: ")
        effects = (f"cannot be used as it is: {_plain(what)}",)
    ordered = tuple(sorted(effects, key=_lightness))
    weighty = sum(_lightness(effect) < _HARMLESS for effect in ordered)
    return Meaning(name, ordered or ("nothing: it is empty",), changed, weighty)


def _lightness(effect: str) -> int:
    """What there is once comes before what there may be many of; what sets or forbids something comes last."""
    if effect.startswith((_SETS, f"{_ADDS}deny ", f"{_ADDS}ask ")):
        return _HARMLESS + effect.startswith(_SETS)
    return int(effect.startswith((_ADDS, _FOR, _SERVER)))


def _effects(name: str, data: bytes) -> Iterator[str]:
    file = Path(name)
    layer = servers_layer(file, data)[0] if name in SERVERS else toml_layer(file, data=data)
    for title, table in layer.tables.items():
        if not isinstance(table, Mapping):
            yield f"sets {_plain(title)}"
            continue
        yield from _TABLES.get(title, _table)(title, table)


# ---- tables


def _table(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    """A table of which every key is told."""
    for key, value in table.items():
        yield f"{_SETS}{_plain(title)}] {_plain(key)} = {_value(key, value)}"


def _llm(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        match key, value:
            case "base_url", str():
                yield f"sends all that is said and read to {_plain(value)}"
            case "model", str():
                yield f"chooses the model {_plain(value)}"
            case "api_key", str():
                yield f"gives that place {_key(value)}"
            case "headers", Mapping():
                yield f"sends headers along: {_named(value)}"
            case "prices", _:
                yield from _table(title, {key: value})
            case _, Mapping():
                for effect in _llm(f"{title}.{key}", value):
                    yield effect if effect.startswith(_SETS) else f"{_FOR}{_plain(key)}: {effect}"
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
                yield f"opens the network to {_listed(value)}"
            case "writable", list():
                yield f"lets tools change what is protected: {_listed(value)}"
            case _:
                yield from _table(title, {key: value})


def _policy(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        match key, value:
            case "approve", "auto":
                yield "lets calls run without asking you"
            case "rules", list():
                yield from (f"{_ADDS}{_plain(str(rule))}" for rule in value)
            case _:
                yield from _table(title, {key: value})


def _browser(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        match key, value:
            case "chrome_instance_path", str():
                yield f"starts this program as the browser: {_plain(value)}"
            case "proxy", Mapping():
                yield f"sends the browser through the proxy {_plain(str(value.get('server', '')))}"
            case (("wss_url" | "cdp_url"), str()):
                yield f"drives the browser at {_plain(value)}"
            case _:
                yield from _table(title, {key: value})


def _mcp(title: str, table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        if key == "servers" and isinstance(value, Mapping):
            servers = list(value.items())
            programs = sum(isinstance(each, Mapping) and bool(each.get("command")) for _, each in servers)
            if programs:
                yield f"starts {programs} program{'s' if programs > 1 else ''} as MCP servers"
            yield from (_server(name, each) for name, each in servers)
        elif key == "server_reference":
            yield f"starts the Python module {_plain(str(value))} as an MCP server"
        else:
            yield from _table(title, {key: value})


def _server(name: str, server: Any) -> str:
    if not isinstance(server, Mapping):
        return f"{_SERVER}{_plain(name)}: {_value(name, server)}"
    args = server.get("args", [])
    words = [str(server.get("command", "")), *map(str, args if isinstance(args, list) else [args])]
    what = shlex.join(words) if server.get("command") else f"asks {server.get('url', '')}"
    more = [f"{key} {_named(server[key])}" for key in ("env", "headers") if isinstance(server.get(key), Mapping)]
    return _plain(f"{_SERVER}{name}: {what}") + (f" (with {'; '.join(more)})" if more else "")


_TABLES = {"llm": _llm, "sandbox": _sandbox, "policy": _policy, "browser": _browser, "mcp": _mcp}


# ---- values


def _key(value: str) -> str:
    taken = VARIABLE.fullmatch(value)
    return f"the key in your variable {taken['name']}" if taken else "a key that stands there"


def _value(key: str, value: Any) -> str:
    if key in _SECRET or key.endswith("_api_key"):
        return _key(str(value))
    return _plain(str(value) if not isinstance(value, bool) else str(value).lower())


def _named(values: Mapping[str, Any]) -> str:
    """Names, and the variables of the user that are taken for them."""
    shown = []
    for name, value in list(values.items())[:_MOST]:
        taken = VARIABLE.fullmatch(value) if isinstance(value, str) else None
        shown.append(f"{_plain(name)} from your variable {taken['name']}" if taken else _plain(name))
    return ", ".join(shown)


def _listed(values: list[Any]) -> str:
    more = f" and {len(values) - _MOST} more" if len(values) > _MOST else ""
    return ", ".join(_plain(str(value)) for value in values[:_MOST]) + more


def _plain(text: str) -> str:
    """Text on one line with everything spelt out that hides or acts."""
    more = f"… ({len(text) - _LONGEST:,} characters more)" if len(text) > _LONGEST else ""
    return show_exactly(text[:_LONGEST]).replace("\n", "⏎") + more
