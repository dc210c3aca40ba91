"""Which MCP servers an agent uses: the configured ones, some of them by name, or those that a program describes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias

from handwork.config import MCPServerSettings, Settings
from handwork.errors import ConfigError
from handwork.mcp.described import described

Wanted: TypeAlias = Mapping[str, Any] | Iterable[str] | None
"""None: all that are configured; names of configured ones; or name → MCPServerSettings, or what stands in mcp.json."""


def chosen(wanted: Wanted, settings: Settings, workspace: str) -> dict[str, MCPServerSettings]:
    """The servers by their names. Raises ConfigError for a name that is not configured and for what describes no server."""
    configured = settings.mcp.servers
    if wanted is None:
        return {name: server for name, server in configured.items() if not server.disabled}
    if isinstance(wanted, Mapping):
        return {name: described(name, server, settings.environ, workspace) for name, server in wanted.items()}
    return {name: _configured(name, configured) for name in ([wanted] if isinstance(wanted, str) else wanted)}


def _configured(name: str, configured: Mapping[str, MCPServerSettings]) -> MCPServerSettings:
    if (found := configured.get(name)) is not None:
        return found
    near = get_close_matches(name, configured, 1)
    there = f"there are: {', '.join(configured)}" if configured else "none is configured: handwork mcp add"
    raise ConfigError(f"No MCP server is named {name!r}", hint=f"did you mean {near[0]}?" if near else there)
