"""A server as a program describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from handwork.config import MCPServerSettings
from handwork.config.mcp_variables import with_values
from handwork.errors import ConfigError


def described(
    name: str, server: Any, environ: Mapping[str, str] | None = None, workspace: str = ""
) -> MCPServerSettings:
    """The settings of a server: as they are, or of what stands in mcp.json for one. Of the latter what it names (`env:NAME`, `${NAME}`)
    gets its value, if `environ` is given. Raises ConfigError."""
    if isinstance(server, MCPServerSettings):
        return server
    try:
        found = MCPServerSettings.model_validate(server)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(f"MCP server {name}: {f'{place}: ' if place else ''}{first['msg']}") from None
    return found if environ is None else with_values(found, environ, workspace)
