"""Where settings come from: a file, the environment, the command line (CONTRACT G)."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import ValidationError
from pydantic_core import to_json

from handwork.config.llm_tables import LLMTables
from handwork.config.settings import (
    Home,
    LimitsSettings,
    LLMSettings,
    PolicySettings,
    PriceSettings,
    SandboxSettings,
    Settings,
    SettingsTable,
    StoreSettings,
)
from handwork.errors import ConfigError

_TABLES: Mapping[str, type[SettingsTable]] = {
    "llm": LLMSettings,
    "sandbox": SandboxSettings,
    "policy": PolicySettings,
    "limits": LimitsSettings,
    "store": StoreSettings,
}
_OF_OPENMANUS = {"browser", "search", "daytona", "mcp", "runflow"}
"""Tables that are accepted and have no effect yet."""
_OF_OPENMANUS_SANDBOX = {"use_sandbox", "image", "work_dir", "memory_limit", "cpu_limit", "timeout", "network_enabled"}
_NOT_SETTINGS = {"HANDWORK_HOME"}
_SHORT_NAMES = {name: f"LLM_{name}" for name in ("MODEL", "BASE_URL", "API_KEY")}
_PREFIX = "HANDWORK_"

_Path: TypeAlias = tuple[str, ...]
_Tables: TypeAlias = Mapping[str, Mapping[str, Any]]


def load_settings(
    config: Path | None = None,
    *,
    workspace: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """All settings: the configuration file, under the environment's HANDWORK_… variables, under `overrides`.

    Args:
        config: the file; None takes config.toml or handwork.toml of the user's configuration folder, if there is one.
        workspace: where the agent will work (None: the current folder). A configuration file that lies there is not
            read, since a workspace must not configure what works on it; `notices` says so.
        environ: None is the process's own.
        overrides: tables like the file's; their [llm] also goes over every [llm.<name>].

    Raises ConfigError, naming the file and line (or variable), the key and what was expected.
    """
    environ = dict(os.environ if environ is None else environ)
    home = Home.from_environ(environ)
    file = config or next(
        (path for name in ("config", "handwork") if (path := home.config / f"{name}.toml").is_file()), None
    )
    layers = _Layers(LLMTables(environ))
    if file is not None:
        text = _read(file)
        layers.add(_parse(text, file), lambda path: f"{file}, line {_line_of(text, path)}", strict=True)
    variables = dict(_variables(environ))
    layers.add(_nested(variables, environ), lambda path: f"environment variable {variables[path]}")
    layers.add(overrides or {}, lambda path: f"--{path[-1].replace('_', '-')}")
    layers.notices.extend(_unknown_variables(environ))
    layers.notices.extend(_unread(workspace or Path.cwd(), file))
    tables = {name: _TABLES[name](**values) for name, values in layers.tables.items()}
    found, told = layers.llm.settled()
    llm = {name: _with_key(each.settings, environ) for name, each in found.items()}
    withheld = {name: each.withheld for name, each in found.items() if each.withheld}
    notices = (*layers.notices, *told)
    more = {"llm": llm, "home": home, "environ": environ, "notices": notices, "withheld": withheld}
    return Settings.model_validate(tables | more)


@dataclass
class _Layers:
    """What the sources say, each over the ones before it."""

    llm: LLMTables
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    def add(self, data: Mapping[str, Any], where: Callable[[_Path], str], *, strict: bool = False) -> None:
        """Check one source's tables and put them over what is there; `where` says where it set a key."""
        unused = [f"[{name}]" for name in data if name in _OF_OPENMANUS]
        for name, table in data.items():
            if name in _OF_OPENMANUS:
                continue
            if name not in _TABLES:
                raise ConfigError(f"{where((name,))}: unknown table or key {name!r}{_nearest(name, _TABLES)}")
            if not isinstance(table, Mapping):
                raise ConfigError(f"{where((name,))}: {name} must be a table: [{name}]")
            if name == "llm":
                self._add_llm(table, where, strict)
                continue
            if name == "sandbox":
                unused += [f"[sandbox] {key}" for key in table if key in _OF_OPENMANUS_SANDBOX]
                table = {key: value for key, value in table.items() if key not in _OF_OPENMANUS_SANDBOX}
            self.tables.setdefault(name, {}).update(_checked(_TABLES[name], table, (name,), where, strict))
        if unused:
            self.notices.append(f"Accepted, but without effect in this version: {', '.join(unused)}")

    def _add_llm(self, table: Mapping[str, Any], where: Callable[[_Path], str], strict: bool) -> None:
        named = {k: v for k, v in table.items() if isinstance(v, Mapping) and k not in ("headers", "prices")}
        own = {k: v for k, v in table.items() if k not in named}
        self.llm.add(
            _checked(LLMSettings, own, ("llm",), where, strict),
            {key: _checked(LLMSettings, values, ("llm", key), where, strict) for key, values in named.items()},
            where,
        )


def _checked(
    kind: type[SettingsTable], table: Mapping[str, Any], path: _Path, where: Callable[[_Path], str], strict: bool
) -> dict[str, Any]:
    """The keys of a table with their values in the settings' types. Files are strict: "4096" is no number there."""
    try:
        if strict:
            given = kind.model_validate_json(to_json(table, inf_nan_mode="constants"), strict=True)
        else:
            given = kind.model_validate(dict(table))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        problem = next((each for each in problems if each["type"] == "extra_forbidden"), problems[0])  # tells the most
        key, *within = map(str, problem["loc"])
        title = f"[{'.'.join(path)}] {key}"
        if problem["type"] == "extra_forbidden":
            known: Mapping[str, object] = kind.model_fields
            if within:
                title, known = f"{title}.{within[-1]}", PriceSettings.model_fields
            near = _nearest((within or [key])[-1], known)
            raise ConfigError(f"{where((*path, key, *within))}: unknown key {title}{near}") from None
        if problem["type"] == "missing":
            raise ConfigError(f"{where((*path, key))}: {title} has no {within[-1]}, and it must") from None
        expected = problem["msg"].removeprefix("Input should be ").removeprefix("Input should ")
        raise ConfigError(f"{where((*path, key))}: {title} is wrong: expected {expected}") from None
    return {name: getattr(given, name) for name in given.model_fields_set}


def _with_key(settings: LLMSettings, environ: Mapping[str, str]) -> LLMSettings:
    """`api_key = "env:NAME"` is the variable's value; left as it stands if that is not set, for whoever needs the key."""
    key = settings.api_key
    found = environ.get(key.removeprefix("env:")) if key.startswith("env:") else None
    return settings.model_copy(update={"api_key": found}) if found else settings


def _nearest(name: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(name.lower(), known, 1, 0.5)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"


# ---- files


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise ConfigError(f"{file}: the configuration cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{file}, line {line}: the configuration is not UTF-8 text") from None


def _parse(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, at, place = str(error).partition(" (at ")
        line = re.match(r"line (\d+)", place)
        number = int(line[1]) if at and line else text.count("\n") + 1
        raise ConfigError(f"{file}, line {number}: this is not valid TOML: {what}") from None
    except (RecursionError, ValueError) as error:
        raise ConfigError(f"{file}: this is not valid TOML: {error}") from None


def _line_of(text: str, path: _Path) -> int:
    """The line on which a key is set: the first that makes it appear when the file is read line by line.

    Reading, rather than searching, is right for every way in which TOML can write a key.
    """
    lines = text.split("\n")
    begin = 1
    for number in range(1, len(lines) + 1):
        try:
            data: Any = tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue  # inside a value of several lines
        for part in path:
            data = data.get(part) if isinstance(data, dict) else None
        if data is not None:
            return begin
        begin = number + 1
    return begin


def _unread(workspace: Path, taken: Path | None) -> Iterator[str]:
    for name in ("handwork.toml", "config/config.toml"):
        file = workspace / name
        if file.is_file() and not (taken and taken.exists() and file.samefile(taken)):
            yield f"{file} is not read: a workspace does not configure Handwork. To use the file: --config {file}"


# ---- the environment


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[_Path, str]]:
    """The settings that variables name, short names first so that the full ones win. Raises ConfigError for a misspelt one."""
    names = sorted(name for name in environ if name.startswith(_PREFIX) and name not in _NOT_SETTINGS and environ[name])
    for name in sorted(names, key=lambda name: name.removeprefix(_PREFIX) not in _SHORT_NAMES):
        short = name.removeprefix(_PREFIX)
        table, _, key = _SHORT_NAMES.get(short, short).lower().partition("_")
        if table not in _TABLES:
            continue  # perhaps another program's: `_unknown_variables` tells of it
        fields = _TABLES[table].model_fields
        if key in fields:
            yield (table, key), name
            continue
        longest = max((f for f in fields if key.endswith(f"_{f}")), key=len, default="")
        if table != "llm" or not longest:
            raise ConfigError(f"environment variable {name}: unknown setting{_nearest(key, fields)}")
        yield (table, key.removesuffix(f"_{longest}"), longest), name


def _unknown_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Variables with our prefix that set nothing: perhaps another program's, perhaps misspelt."""
    known = {*_NOT_SETTINGS, *(_PREFIX + name for name in _SHORT_NAMES)}
    known |= {f"{_PREFIX}{table}_{key}".upper() for table, kind in _TABLES.items() for key in kind.model_fields}
    for name in sorted(environ):
        table = name.removeprefix(_PREFIX).partition("_")[0].lower()
        if name.startswith(_PREFIX) and environ[name] and name not in known and table not in _TABLES:
            near = get_close_matches(name, sorted(known), 1, 0.8)
            yield f"{name} sets nothing{f'; did you mean {near[0]}?' if near else ''}"


def _nested(variables: Mapping[_Path, str], environ: Mapping[str, str]) -> _Tables:
    tables: dict[str, Any] = {}
    for path, name in variables.items():
        table = tables
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = environ[name]
    return tables
