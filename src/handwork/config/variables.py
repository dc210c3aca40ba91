"""The environment as a layer: HANDWORK_<TABLE>_<KEY>, for every table and the tables in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias, TypeVar

from pydantic.fields import FieldInfo

from handwork.config.layers import KeyPath, Layer, nearest
from handwork.config.masking import VARIABLE
from handwork.config.table import SettingsTable, holds_named, inner_table, secrets, takes_list, takes_table
from handwork.errors import ConfigError

_PREFIX = "HANDWORK_"
_NOT_SETTINGS = {"HANDWORK_HOME"}
_SHORT_NAMES = {name: f"LLM_{name}" for name in ("MODEL", "BASE_URL", "API_KEY")}

Kinds: TypeAlias = Mapping[str, type[SettingsTable]]
T = TypeVar("T", bound=SettingsTable)


def environment_layer(environ: Mapping[str, str], kinds: Kinds) -> Layer:
    """The settings that variables name. Lists are parted by commas or are JSON, as whole tables are. Raises ConfigError."""
    variables: dict[KeyPath, str] = {}
    tables: dict[str, Any] = {}
    for path, name, field in _found(environ, kinds):
        variables[path] = name
        table = tables
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = _read(environ[name], name, field)

    def where(path: KeyPath) -> str:
        while path and path not in variables:
            path = path[:-1]
        return f"environment variable {variables.get(path, _PREFIX + '…')}"

    return Layer("environment", tables, where)


def variables_without_effect(environ: Mapping[str, str], kinds: Kinds) -> Iterator[str]:
    """What to say of variables with our prefix that set nothing: perhaps another program's, perhaps misspelt."""
    for name in sorted(environ):
        table = name.removeprefix(_PREFIX).partition("_")[0].lower()
        ours = name in _NOT_SETTINGS or name.removeprefix(_PREFIX) in _SHORT_NAMES or table in kinds
        if name.startswith(_PREFIX) and environ[name] and not ours:
            near = get_close_matches(name, sorted(_known(kinds)), 1, 0.8)
            yield f"{name} sets nothing{f'; did you mean {near[0]}?' if near else ''}"


def with_variables(table: T, environ: Mapping[str, str]) -> T:
    """A table whose secrets may be `env:NAME` with the variables' values; one that is not set is left as it stands, for whoever
    needs it. Before it may stand a scheme, as in `Bearer env:NAME`."""
    if not any("env:" in secret for _, secret in secrets(table)):
        return table
    found: dict[str, Any] = {}
    for name, field in type(table).model_fields.items():
        value = getattr(table, name)
        if isinstance(value, SettingsTable):
            found[name] = with_variables(value, environ)
        elif isinstance(value, Mapping):
            found[name] = {key: _looked_up(inner, environ, field) for key, inner in value.items()}
        elif not field.repr:
            found[name] = _looked_up(value, environ, field)
    return table.model_copy(update=found)


def _looked_up(value: Any, environ: Mapping[str, str], field: FieldInfo) -> Any:
    if isinstance(value, SettingsTable):
        return with_variables(value, environ)
    named = VARIABLE.fullmatch(value) if isinstance(value, str) and not field.repr else None
    return named["before"] + environ[named["name"]] if named and environ.get(named["name"]) else value


def _found(environ: Mapping[str, str], kinds: Kinds) -> Iterator[tuple[KeyPath, str, FieldInfo]]:
    """The variables that are settings: short names first, so that the full ones win, and a table before its keys."""
    names = sorted(name for name in environ if name.startswith(_PREFIX) and name not in _NOT_SETTINGS and environ[name])
    for name in sorted(names, key=lambda name: name.removeprefix(_PREFIX) not in _SHORT_NAMES):
        short = name.removeprefix(_PREFIX)
        table, _, key = _SHORT_NAMES.get(short, short).lower().partition("_")
        if table not in kinds:
            continue  # perhaps another program's: `variables_without_effect` tells of it
        found = _in_table(kinds[table], key) or _in_table(kinds[table], f"{table}_{key}")
        if found is None and table == "llm":
            found = _in_named(kinds[table], key)
        if found is None:
            hint = nearest(key, {each.lower(): None for each in _paths(kinds[table])})
            raise ConfigError(f"environment variable {name}: unknown setting", hint=hint)
        yield (table, *found[0]), name, found[1]


def _in_table(kind: type[SettingsTable], key: str) -> tuple[KeyPath, FieldInfo] | None:
    for name, field in kind.model_fields.items():
        inner = inner_table(field)
        if key == name.lower():
            return (name,), field
        inside = inner and not holds_named(field) and key.startswith(f"{name.lower()}_")
        if inner and inside and (found := _in_table(inner, key[len(name) + 1 :])):
            return (name, *found[0]), found[1]
    return None


def _in_named(kind: type[SettingsTable], key: str) -> tuple[KeyPath, FieldInfo] | None:
    """HANDWORK_LLM_<NAME>_<KEY>: of the keys that a variable may end with, the longest."""
    for place, char in enumerate(key):
        if char == "_" and place and (found := _in_table(kind, key[place + 1 :])):
            return (key[:place], *found[0]), found[1]
    return None


def _read(text: str, name: str, field: FieldInfo) -> Any:
    """A variable's text as its key takes it: numbers and booleans are read where they are checked."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise ConfigError(f"environment variable {name}: this is not UTF-8 text")
    table = takes_table(field)
    if not table and not takes_list(field):
        return text
    if text.strip()[:1] == ("{" if table else "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise ConfigError(f"environment variable {name}: this is not valid JSON") from None
    if table:
        raise ConfigError(f"environment variable {name}: expected a JSON object", hint='such as {"name": "value"}')
    return [part.strip() for part in text.split(",") if part.strip()]


def _known(kinds: Kinds) -> Iterator[str]:
    yield from (*_NOT_SETTINGS, *(_PREFIX + name for name in _SHORT_NAMES))
    for table, kind in kinds.items():
        yield from (f"{_PREFIX}{table}_{path}".upper() for path in _paths(kind))


def _paths(kind: type[SettingsTable]) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        yield name
        inner = inner_table(field)
        if inner and not holds_named(field):
            yield from (f"{name}_{path}" for path in _paths(inner))
