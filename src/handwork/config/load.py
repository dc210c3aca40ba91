"""Where settings come from: files, under the environment, under the command line (CONTRACT G)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handwork.config.files import is_there, toml_layer
from handwork.config.layers import KeyPath, Layer, Origin, nearest
from handwork.config.llm_tables import LLMTables
from handwork.config.mcp import MCPSettings
from handwork.config.mcp_file import servers_layer
from handwork.config.settings import (
    Home,
    LimitsSettings,
    LLMSettings,
    PolicySettings,
    SandboxSettings,
    Settings,
    StoreSettings,
)
from handwork.config.setup_file import FILE as SETUP
from handwork.config.table import SettingsTable, holds_named, inner_table
from handwork.config.tool_tables import BrowserSettings, DaytonaSettings, RunflowSettings, SearchSettings
from handwork.config.unused import container_notice, without_effect
from handwork.config.variables import environment_layer, variables_without_effect, with_variables

TABLES: Mapping[str, type[SettingsTable]] = {
    "llm": LLMSettings,
    "sandbox": SandboxSettings,
    "policy": PolicySettings,
    "limits": LimitsSettings,
    "store": StoreSettings,
    "browser": BrowserSettings,
    "search": SearchSettings,
    "daytona": DaytonaSettings,
    "mcp": MCPSettings,
    "runflow": RunflowSettings,
}
_OPTIONS: Mapping[KeyPath, str] = {("sandbox", "backend"): "--sandbox", ("sandbox", "network"): "--net"}
"""Options that are not called like their keys."""
_USERS_OWN = ("config.toml", "handwork.toml")
_SERVERS = "mcp.json"
_OF_A_WORKSPACE = ("handwork.toml", "config/config.toml", _SERVERS, f"config/{_SERVERS}")


@dataclass(frozen=True)
class Configuration:
    """The settings and how they came about.

    origins: where each key was set, by its path; a key that is not there has its default. The tables of models stand as
        ("llm", "default", key) and ("llm", name, key).
    files: those that were read, the lowest layer first.
    unread: those that were found and not read, each with the reason.
    """

    settings: Settings
    origins: Mapping[KeyPath, Origin] = field(repr=False)
    files: tuple[Path, ...]
    unread: Mapping[Path, str]


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
    return load_configuration(config, workspace=workspace, environ=environ, overrides=overrides).settings


def load_configuration(
    config: Path | None = None,
    *,
    workspace: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Configuration:
    """What `load_settings` returns, with where each value came from. Raises ConfigError."""
    environ = dict(os.environ if environ is None else environ)
    home = Home.from_environ(environ)
    own = [path for name in _USERS_OWN if is_there(path := home.config / name)]
    taken = config or next(iter(own), None)
    merged = _Merged(LLMTables(environ))
    if is_there(setup := home.config / SETUP):
        merged.add(toml_layer(setup, "setup"))
    if taken is not None:
        merged.add(toml_layer(taken))
    passed: list[str] = []
    if is_there(servers := (taken.parent if taken else home.config) / _SERVERS):
        layer, passed = servers_layer(servers)
        merged.add(layer)
    merged.add(environment_layer(environ, TABLES))
    merged.add(Layer("command line", overrides or {}, _option))
    unread = {path: f"{taken} was taken" for path in own if path != taken}
    foreign = _of_the_workspace(workspace, merged.layers)
    notices = [
        *variables_without_effect(environ, TABLES),
        *_not_read(foreign),
        *_home_within(home, workspace),
        *([f"{servers}: without meaning here: {', '.join(passed)}"] if passed else []),
    ]
    settings, origins = merged.settled(home, environ, notices, tuple(foreign))
    unread |= dict.fromkeys(foreign, "a workspace does not configure Handwork")
    files = tuple(layer.file for layer in merged.layers if layer.file is not None)
    return Configuration(settings, origins, files, unread)


@dataclass
class _Merged:
    """What the layers say, each over the ones before it."""

    llm: LLMTables
    tables: dict[str, Any] = field(default_factory=dict)
    origins: dict[KeyPath, Origin] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)

    def add(self, layer: Layer) -> None:
        """Check one layer's tables and put them over what is there."""
        self.layers.append(layer)
        for name, table in layer.tables.items():
            if name not in TABLES:
                raise layer.wrong((name,), f"unknown table or key {name!r}", nearest(name, TABLES))
            if not isinstance(table, Mapping):
                raise layer.wrong((name,), f"{name} must be a table: [{name}]")
            if name == "llm":
                self._add_llm(table, layer)
                continue
            found = layer.checked(TABLES[name], table, (name,))
            self._put(self.tables.setdefault(name, {}), found, (name,), TABLES[name], layer)

    def settled(
        self, home: Home, environ: Mapping[str, str], notices: list[str], unread: tuple[Path, ...]
    ) -> tuple[Settings, Mapping[KeyPath, Origin]]:
        """The settings, and where each key was set."""
        tables = {name: TABLES[name](**values) for name, values in self.tables.items()}
        found = self.llm.settled()
        told = {name: texts for name, each in found.items() if (texts := each.notices)}
        origins = dict(self.origins)
        for name, each in found.items():
            origins |= {("llm", name, key): origin for key, origin in each.origins.items()}
        more = {
            "llm": {name: with_variables(each.settings, environ) for name, each in found.items()},
            "home": home,
            "environ": environ,
            "unread": unread,
            "withheld": {name: each.withheld for name, each in found.items() if each.withheld},
            "table_notices": {name: texts for name, texts in told.items() if name != "default"},
        }
        settings = Settings.model_validate(
            {name: with_variables(table, environ) for name, table in tables.items()} | more
        )
        unused = [*container_notice(settings, origins, self.layers), *without_effect(settings, origins)]
        return settings.model_copy(update={"notices": (*unused, *notices, *told.get("default", ()))}), origins

    def _add_llm(self, table: Mapping[str, Any], layer: Layer) -> None:
        fields = LLMSettings.model_fields
        named = {name: value for name, value in table.items() if isinstance(value, Mapping) and name not in fields}
        own = {name: value for name, value in table.items() if name not in named}
        self.llm.add(
            layer.checked(LLMSettings, own, ("llm",)),
            {name: layer.checked(LLMSettings, values, ("llm", name)) for name, values in named.items()},
            layer,
        )

    def _put(
        self, below: dict[str, Any], over: Mapping[str, Any], path: KeyPath, kind: type[SettingsTable], layer: Layer
    ) -> None:
        """Put keys over those that are there. A table in a table is laid over the one there; one of many is replaced."""
        for name, value in over.items():
            at, inner = (*path, name), inner_table(kind.model_fields[name])
            if inner and holds_named(kind.model_fields[name]):
                named = below.setdefault(name, {})
                for each, table in value.items():
                    named[each] = {}
                    self.origins = {old: origin for old, origin in self.origins.items() if old[:-1] != (*at, each)}
                    self._put(named[each], table, (*at, each), inner, layer)
            elif inner:
                self._put(below.setdefault(name, {}), value, at, inner, layer)
            else:
                below[name] = value
                self.origins[at] = layer.origin(at)


def _option(path: KeyPath) -> str:
    """The option that sets a key, as it is typed."""
    return _OPTIONS.get(path) or f"--{path[-1].replace('_', '-')}"


def _of_the_workspace(workspace: Path | None, layers: list[Layer]) -> list[Path]:
    """The configuration files that lie in the workspace and were not read."""
    read = [layer.file for layer in layers if layer.file is not None]
    found = []
    for name in _OF_A_WORKSPACE:
        with suppress(OSError, ValueError):  # a folder that may not be entered, or the current one is gone
            file = (workspace or Path.cwd()) / name
            if file.is_file() and not any(each.exists() and file.samefile(each) for each in read):
                found.append(file)
    return found


def _home_within(home: Home, workspace: Path | None) -> Iterator[str]:
    """The sandbox hides such a home, but git and whatever copies the workspace take it along."""
    if workspace is not None and home.data.absolute().is_relative_to(workspace.absolute()):
        yield f"Handwork's own files ({home.data}) lie in the workspace: set HANDWORK_HOME to a folder outside of it"


def _not_read(files: list[Path]) -> Iterator[str]:
    """One notice of all of them."""
    if not files:
        return
    named = ", ".join(map(str, files))
    are = "are" if len(files) > 1 else "is"
    config = next((file for file in files if file.suffix == ".toml"), None)
    how = f" To use the file: --config {shlex.quote(str(config))}" if config else ""
    yield f"{named} {are} not read: a workspace does not configure Handwork.{how}"
