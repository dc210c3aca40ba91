"""A server as a program describes it."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from handwork.config import MCPServerSettings
from handwork.errors import ConfigError


def described(name: str, server: Any) -> MCPServerSettings:
    """The settings of a server: as they are, or of what stands in mcp.json for one. Raises ConfigError."""
    if isinstance(server, MCPServerSettings):
        return server
    try:
        return MCPServerSettings.model_validate(server)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(f"MCP server {name}: {f'{place}: ' if place else ''}{first['msg']}") from None
