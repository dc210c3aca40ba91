"""What a server's words name of the user's surroundings: `env:NAME`, `${NAME}` and the folders that editors have words for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from handwork.config.masking import VARIABLE
from handwork.config.mcp import MCPServerSettings, MCPSettings
from handwork.config.variables import with_variables

_REFERENCE = re.compile(r"\$\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WHOLE = re.compile(r"\$([A-Z_][A-Z0-9_]*)", re.ASCII)
"""Gemini CLI's way, and only for the whole of a value: a dollar sign within one may be meant as it stands."""
_TEXTS = ("command", "url", "cwd")
_LISTS = ("args", "paths")
_NAMED = ("env", "headers")


def servers_with_variables(table: MCPSettings, environ: Mapping[str, str], workspace: str) -> MCPSettings:
    """[mcp] with the values of what its servers name. What is not set stays as it stands, and the server says so (`unset`)."""
    if not table.servers:
        return table
    found = {name: with_values(server, environ, workspace) for name, server in table.servers.items()}
    return table.model_copy(update={"servers": found})


def with_values(server: MCPServerSettings, environ: Mapping[str, str], workspace: str) -> MCPServerSettings:
    """One server with the values of what it names. Each text is read once: a value is never looked into for further names."""
    values = _Values(environ, workspace)
    found: dict[str, Any] = {name: values.of_text(getattr(server, name)) for name in _TEXTS}
    found |= {name: tuple(values.of_text(each) for each in getattr(server, name)) for name in _LISTS}
    for name in _NAMED:
        found[name] = {key: values.of_secret(value) for key, value in getattr(server, name).items()}
    found["oauth"] = with_variables(server.oauth, environ)
    changed = {name: value for name, value in found.items() if value != getattr(server, name)}
    return server.filled(changed, tuple(dict.fromkeys(values.unset)))


def variables_in(value: Any) -> Iterator[str]:
    """The names of the user's variables that a part of a server's entry would be given."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from variables_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from variables_in(inner)
    elif isinstance(value, str):
        if named := VARIABLE.fullmatch(value) or _WHOLE.fullmatch(value):
            yield named["name"] if "name" in named.re.groupindex else named[1]
        yield from _references_in(value)


def _references_in(text: str) -> Iterator[str]:
    for found in _REFERENCE.finditer(text):
        name, default = _parts(found[1])
        if name not in _PLACES and _NAME.fullmatch(name):
            yield name
        yield from _references_in(default or "")


def _parts(reference: str) -> tuple[str, str | None]:
    """The name in `NAME`, `env:NAME` or `NAME:-default`, and the default."""
    name, has_default, default = reference.partition(":-")
    return name.removeprefix("env:"), default if has_default else None


@dataclass
class _Values:
    """Looks up names, and remembers those that are not set."""

    environ: Mapping[str, str]
    workspace: str
    unset: list[str] = field(default_factory=list)

    def of_text(self, text: str) -> str:
        """A text with values in the place of `${…}`."""
        return _REFERENCE.sub(self._of_reference, text) if "${" in text else text

    def of_secret(self, text: str) -> str:
        """The same, where the whole may also be `env:NAME` (after a scheme) or `$NAME`."""
        if named := VARIABLE.fullmatch(text):
            if value := self.environ.get(named["name"]):
                return named["before"] + value
            self.unset.append(named["name"])
            return text
        if whole := _WHOLE.fullmatch(text):
            if whole[1] not in self.environ:
                self.unset.append(whole[1])
            return self.environ.get(whole[1], text)
        return self.of_text(text)

    def _of_reference(self, found: re.Match[str]) -> str:
        name, default = _parts(found[1])
        if name in _PLACES:
            return _PLACES[name](self)
        value = self.environ.get(name) if _NAME.fullmatch(name) else None
        if default is not None:
            return value or self.of_text(default)
        if value is None:
            self.unset.append(name if _NAME.fullmatch(name) else found[0])
            return found[0]
        return value


_PLACES: Mapping[str, Callable[[_Values], str]] = {
    "workspaceFolder": lambda values: values.workspace,
    "workspaceRoot": lambda values: values.workspace,
    "workspaceFolderBasename": lambda values: PurePath(values.workspace).name,
    "userHome": lambda values: values.environ.get("HOME", ""),
    "pathSeparator": lambda values: os.sep,
    "/": lambda values: os.sep,
}
"""Words of editors for places. They are no variables of the user's, and tell nothing that is secret."""
