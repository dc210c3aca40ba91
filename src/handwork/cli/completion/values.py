"""The values that an option or argument may have, as far as they can be listed in no time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

Values = Sequence[tuple[str, str]]
FILES, FOLDERS = "files", "folders"
_PLACES = {"FILE": FILES, "DIR": FOLDERS}
_MOST = 100
_OF_SERVERS = ("approve", "remove")
"""Commands whose NAME is one of an MCP server."""


def values_of(parameter: Any, command: Any) -> Values | str:
    """Values with what they mean, or FILES or FOLDERS."""
    if parameter.name in _LISTS:
        return _LISTS[parameter.name]()
    if parameter.metavar == "NAME" and command.name == "fetch":
        return _fetchable()
    if parameter.metavar == "NAME" and command.name in _OF_SERVERS:
        return _servers()
    if parameter.metavar in _PLACES:
        return _PLACES[parameter.metavar]
    choices = parameter.shell_complete(typer.Context(command), "")
    return [(choice.value, choice.help or "") for choice in choices if choice.type == "plain" and choice.value]


def _sessions() -> Values:
    from handwork.cli.clean import one_line
    from handwork.config import load_settings
    from handwork.store.glance import recent_sessions

    path = load_settings().store_path
    return [(name, one_line(title, 60)) for name, title in recent_sessions(path, str(Path.cwd()), _MOST)]


def _agents() -> Values:
    from handwork.agent.names import ROLES

    return [(name, "") for name in ROLES]


def _models() -> Values:
    """Those that are configured, of providers whose key is set, and local ones."""
    from handwork.config import load_settings
    from handwork.config.providers import PROVIDERS
    from handwork.llm.local.catalog import LOCAL_MODELS

    settings = load_settings()
    configured = [(llm.model, "configured") for llm in settings.llm.values() if llm.model]
    with_key = [
        (f"{name}:{provider.default_model}", provider.title)
        for name, provider in PROVIDERS.items()
        if provider.default_model and (not provider.key_variables or provider.variable(os.environ))
    ]
    local = [
        (f"local:{facts.name}", "runs in this process")
        for facts in LOCAL_MODELS
        if (settings.home.models / facts.file).is_file()
    ]
    return list(dict([*configured, *with_key, *local]).items())


def _servers() -> Values:
    """The MCP servers that are configured, with what they run or where they are asked."""
    from handwork.cli.clean import one_line
    from handwork.cli.mcp.listing import what_runs
    from handwork.config import load_settings

    return [(name, one_line(what_runs(server), 60)) for name, server in load_settings().mcp.servers.items()]


def _fetchable() -> Values:
    from handwork.llm.local.catalog import LOCAL_MODELS

    return [(facts.name, "") for facts in LOCAL_MODELS]


_LISTS = {
    "session": _sessions,
    "id": _sessions,
    "agent": _agents,
    "model": _models,
    "mcp": _servers,
    "server": _servers,
}
