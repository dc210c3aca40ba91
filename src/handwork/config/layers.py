"""One place that settings come from: what it says, and where in it each key stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails, to_json

from handwork.config.table import SettingsTable, fields_at, given
from handwork.errors import ConfigError

KeyPath: TypeAlias = tuple[str, ...]
"""The table's name, then the key in it: ("llm", "vision", "model")."""
Kind: TypeAlias = Literal["setup", "file", "servers", "environment", "command line"]


@dataclass(frozen=True, eq=False)
class Layer:
    """What one place says: tables of keys as they were written there.

    `where` names a key's place for people ("config.toml, line 3"); it is asked only when that is told. `strict`: a text is no
    number here, as in a file. `prefix` begins every error.
    """

    kind: Kind
    tables: Mapping[str, Any] = field(repr=False)
    where: Callable[[KeyPath], str] = field(repr=False)
    file: Path | None = None
    line: Callable[[KeyPath], int] | None = field(default=None, repr=False)
    strict: bool = False
    prefix: str = ""

    def origin(self, path: KeyPath) -> Origin:
        """Where this layer sets that key."""
        return Origin(self, path)

    def wrong(self, path: KeyPath, what: str, hint: str = "") -> ConfigError:
        """An error at that key."""
        return ConfigError(f"{self.prefix}{self.where(path)}: {what}", hint=hint)

    def checked(self, kind: type[SettingsTable], table: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
        """The keys of a table of this layer with their values in the settings' types. Raises ConfigError."""
        try:
            if self.strict:
                found = kind.model_validate_json(to_json(table, inf_nan_mode="constants"), strict=True)
            else:
                found = kind.model_validate(dict(table))
        except ValidationError as error:
            raise self._wrong(kind, table, path, error.errors(include_url=False, include_input=False)) from None
        return given(found)

    def _wrong(
        self, kind: type[SettingsTable], table: Mapping[str, Any], path: KeyPath, problems: list[ErrorDetails]
    ) -> ConfigError:
        problem = next((each for each in problems if each["type"] == "extra_forbidden"), problems[0])  # tells the most
        within = _as_written(table, problem)
        title = " ".join(filter(None, (f"[{'.'.join(path)}]", ".".join(within))))
        at = (*path, *within)
        if problem["type"] == "extra_forbidden":
            known = fields_at(kind, within[:-1])
            return self.wrong(at, f"unknown key {title}", nearest(within[-1], known))
        if problem["type"] == "missing":
            table_title = " ".join(filter(None, (f"[{'.'.join(path)}]", ".".join(within[:-1]))))
            return self.wrong(at, f"{table_title} has no {within[-1]}, and it must")
        if problem["type"] in _IN_OUR_WORDS:
            what = problem["msg"].removeprefix("Value error, ")
            return self.wrong(at, f"{title}: {what}", problem.get("ctx", {}).get("hint", ""))
        same = [each for each in problems if _as_written(table, each) == within]
        expected = " or ".join(dict.fromkeys(_expected(each["msg"]) for each in same))
        return self.wrong(at, f"{title} is wrong: expected {expected}")


@dataclass(frozen=True, eq=False)
class Origin:
    """Where one value was set."""

    layer: Layer
    path: KeyPath

    def __str__(self) -> str:
        return self.layer.where(self.path)

    @property
    def line(self) -> int | None:
        """The line in the layer's file; None if it is none."""
        return self.layer.line(self.path) if self.layer.line else None

    @property
    def written(self) -> Any:
        """The value as it was written there, before `env:NAME` was looked up."""
        value: Any = self.layer.tables
        for part in self.path:
            value = value.get(part) if isinstance(value, Mapping) else None
        return value


_IN_OUR_WORDS = {"incomplete", "connection_type", "policy_rule", "host", "writable", "value_error"}
"""Types of problems that are sentences already; those of pydantic say what a value should be."""


def nearest(name: str, known: Mapping[str, object]) -> str:
    """A hint that names the known key which may be meant, or all of them."""
    by_case = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_case, 1, 0.5)
    return f"did you mean {by_case[near[0]]}?" if near else f"known are {', '.join(known)}"


def _expected(text: str) -> str:
    return text.removeprefix("Input should be ").removeprefix("Input should ")


def _as_written(table: Mapping[str, Any], problem: ErrorDetails) -> KeyPath:
    """The problem's path as far as it is one of keys: pydantic adds the names of a union's types."""
    value: Any = table
    path: list[str] = []
    for part in problem["loc"]:
        if isinstance(value, Mapping):
            known, value = part in value, value.get(part)
        elif isinstance(value, list | tuple):
            known = isinstance(part, int) and part < len(value)
            value = value[int(part)] if known else None
        else:
            known = False
        if not known and not (problem["type"] == "missing" and part == problem["loc"][-1]):
            break
        path.append(str(part))
    return tuple(path)
