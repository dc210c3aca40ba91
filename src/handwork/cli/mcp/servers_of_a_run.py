"""The MCP servers of a run: those that --mcp names, beside the configured ones or, for an agent of one server, alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handwork.agent.base import BaseAgent
from handwork.cli.mcp.named import check_installed, named_servers
from handwork.config import Settings
from handwork.errors import ConfigError

_FIELD = "mcp_servers"


def server_fields(role: type[BaseAgent], typed: Sequence[str], settings: Settings) -> Mapping[str, Any]:
    """The field by which an agent's class gets the servers that were named; empty where none was. Raises ConfigError."""
    if not typed:
        return {}
    if not hasattr(role, _FIELD):
        raise ConfigError(f"The agent {role.name} uses no MCP servers", hint="leave --mcp out, or take --agent manus")
    known = settings.mcp.servers
    named = named_servers(typed, known)
    for name, each in named.items():
        if name not in known:
            check_installed(name, each, settings.home)
    if role.name != "mcp":
        return {_FIELD: {name: each for name, each in known.items() if not each.disabled} | named}
    if len(named) > 1:
        raise ConfigError("The agent mcp works with one server", hint="name one by --mcp, or take --agent manus")
    return {_FIELD: named}
