"""Where settings come from: files, under the environment, under the command line (CONTRACT G)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from handwork.config.files import is_there, toml_layer
from handwork.config.from_workspace import FromWorkspace, from_workspace
from handwork.config.layers import KeyPath, Layer, Origin, nearest
from handwork.config.llm_tables import LLMTables
from handwork.config.mcp import MCPSettings
from handwork.config.mcp_file import servers_layer
from handwork.config.mcp_variables import servers_with_variables
from handwork.config.settings import Home, LLMSettings, Settings
from handwork.config.setup_file import FILE as SETUP
from handwork.config.table import SettingsTable, holds_named, inner_table
from handwork.config.tables import TABLES
from handwork.config.unused import container_notice, without_effect
from handwork.config.variables import environment_layer, variables_without_effect, with_variables

_OPTIONS: Mapping[KeyPath, str] = {("sandbox", "backend"): "--sandbox", ("sandbox", "network"): "--net"}
"""Options that are not called like their keys."""
_USERS_OWN = ("config.toml", "handwork.toml")
_SERVERS = "mcp.json"
_LASTING = ("policy", "limits", "mcp")
"""Tables of the user's own file that hold below those of a trusted workspace, which so neither loosens nor loses anything by
leaving it out."""
LASTING = "[policy], [limits] and [mcp]"
"""The same in words."""


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
    trusted: bool | None = None,
) -> Settings:
    """All settings: the configuration file, under the environment's HANDWORK_… variables, under `overrides`.

    Args:
        config: the file; None takes that of a trusted workspace, else config.toml or handwork.toml of the user's
            configuration folder, if there is one.
        workspace: where the agent will work (None: the current folder). What lies there for Handwork (handwork.toml,
            config/config.toml, mcp.json) is read if its user has trusted it as it is now, else `notices` says so.
        environ: None is the process's own.
        overrides: tables like the file's; their [llm] also goes over every [llm.<name>].
        trusted: None asks what the user answered to `handwork` or `handwork trust`; nobody is asked here. True trusts what
            lies in the workspace now, False does not.

    Raises ConfigError, naming the file and line (or variable), the key and what was expected.
    """
    return load_configuration(
        config, workspace=workspace, environ=environ, overrides=overrides, trusted=trusted
    ).settings


def load_configuration(
    config: Path | None = None,
    *,
    workspace: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    trusted: bool | None = None,
) -> Configuration:
    """What `load_settings` returns, with where each value came from. Raises ConfigError."""
    environ = dict(os.environ if environ is None else environ)
    home = Home.from_environ(environ)
    theirs = from_workspace(workspace, home, config, trusted)
    merged = _Merged(LLMTables(environ), str(theirs.used.folder))
    if is_there(setup := home.config / SETUP):
        merged.add(toml_layer(setup, "setup"))
    notices, unread = _add_files(merged, home, config, theirs)
    merged.add(environment_layer(environ, TABLES))
    merged.add(Layer("command line", overrides or {}, _option))
    told = [
        *variables_without_effect(environ, TABLES),
        *theirs.notices,
        *_home_within(home, workspace),
        *notices,
    ]
    settings, origins = merged.settled(home, environ, told, tuple(theirs.unread))
    files = tuple(layer.file for layer in merged.layers if layer.file is not None)
    return Configuration(settings, origins, files, unread | dict(theirs.unread))


def own_configurations(home: Home) -> list[Path]:
    """The user's own configuration files, of which the first counts. Raises ConfigError."""
    return [path for name in _USERS_OWN if is_there(path := home.config / name)]


def _add_files(
    merged: _Merged, home: Home, config: Path | None, theirs: FromWorkspace
) -> tuple[list[str], dict[Path, str]]:
    """Add the configuration that counts (the one that was named, else the workspace's over what lasts of the user's own, else the
    user's own) and the MCP servers; returns what is to be told, and the files that do not count."""
    own = own_configurations(home)
    name = None if config else theirs.config()
    taken = config or (theirs.used.folder / name if name else next(iter(own), None))
    unread = {path: f"{taken} was taken" for path in own if path != taken}
    rules: tuple[str, ...] = ()
    told = [] if config else _add_own(merged, home, own, whole=name is None)
    if name is not None and own:
        rules = tuple(merged.tables.get("policy", {}).get("rules", ()))
        unread[own[0]] = f"but for its {LASTING}: {taken} was taken"
    if taken is not None and (config or name):
        with theirs.reading() if name else nullcontext():
            merged.add(toml_layer(taken, data=theirs.used.files[name] if name else None))
        merged.own_rules_first(rules)
    beside = config.parent / _SERVERS if config else None
    if beside is not None and is_there(beside):
        told += _add_servers(merged, beside)
        return told, unread | theirs.passed_over(name, None)
    if found := theirs.servers(name):
        with theirs.reading():
            told += _add_servers(merged, theirs.used.folder / found, theirs.used.files[found])
    return told, unread | theirs.passed_over(name, found)


def _add_own(merged: _Merged, home: Home, own: list[Path], whole: bool) -> list[str]:
    """Add the user's own configuration, or what of it lasts below that of a workspace, and the user's own servers, which are there
    in every workspace; returns what is to be told."""
    if own and whole:
        merged.add(toml_layer(own[0]))
    elif own:
        merged.add_lasting(toml_layer(own[0]))
    file = home.config / _SERVERS
    return _add_servers(merged, file) if is_there(file) else []


def _add_servers(merged: _Merged, file: Path, data: bytes | None = None) -> list[str]:
    layer, told = servers_layer(file, data)
    merged.add(layer)
    return told


@dataclass
class _Merged:
    """What the layers say, each over the ones before it."""

    llm: LLMTables
    workspace: str
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

    def add_lasting(self, layer: Layer) -> None:
        """Add of the user's own file what holds in a workspace with a file of its own, too."""
        self.add(replace(layer, tables={name: each for name, each in layer.tables.items() if name in _LASTING}))

    def own_rules_first(self, own: tuple[str, ...]) -> None:
        """Rules of the user's own file come before those of a workspace: the first that fits decides."""
        policy = self.tables.get("policy", {})
        if own and policy.get("rules", own) != own:
            policy["rules"] = (*own, *policy["rules"])

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
            {name: self._with_variables(table, environ) for name, table in tables.items()} | more
        )
        unused = [*container_notice(settings, origins, self.layers), *without_effect(settings, origins)]
        return settings.model_copy(update={"notices": (*unused, *notices, *told.get("default", ()))}), origins

    def _with_variables(self, table: SettingsTable, environ: Mapping[str, str]) -> SettingsTable:
        if isinstance(table, MCPSettings):
            return servers_with_variables(table, environ, self.workspace)
        return with_variables(table, environ)

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
                    self.origins = {
                        old: origin for old, origin in self.origins.items() if old[: len(at) + 1] != (*at, each)
                    }
                    self._put(named[each], table, (*at, each), inner, layer)
            elif inner:
                self._put(below.setdefault(name, {}), value, at, inner, layer)
            else:
                below[name] = value
                self.origins[at] = layer.origin(at)


def _option(path: KeyPath) -> str:
    """The option that sets a key, as it is typed."""
    name = [part for part in path if not part.isdigit()][-1]  # an option that is given again makes a list
    return _OPTIONS.get(path) or f"--{name.replace('_', '-')}"


def _home_within(home: Home, workspace: Path | None) -> Iterator[str]:
    """The sandbox hides such a home, but git and whatever copies the workspace take it along."""
    if workspace is not None and home.data.absolute().is_relative_to(workspace.absolute()):
        yield f"Handwork's own files ({home.data}) lie in the workspace: set HANDWORK_HOME to a folder outside of it"
