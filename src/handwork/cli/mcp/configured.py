"""The servers that are configured: each with its settings and the place where it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from handwork.config import MCPServerSettings, Settings
from handwork.config.carried import SERVERS
from handwork.config.load import Configuration, load_configuration
from handwork.config.settings import Home
from handwork.errors import ConfigError

OWN_FILE = "mcp.json"
"""The user's own servers, in the configuration folder."""


@dataclass(frozen=True, slots=True)
class Configured:
    """One server. `file` and `line` are where it is written; None for one that comes from no file."""

    name: str
    settings: MCPServerSettings
    file: Path | None = None
    line: int | None = None


def configured(config: Path | None, workspace: Path) -> tuple[Settings, Mapping[str, Configured]]:
    """The settings of a workspace and its servers, in the order in which they are written. Raises ConfigError."""
    configuration = load_configuration(config, workspace=workspace)
    return configuration.settings, {
        name: _placed(name, settings, configuration) for name, settings in configuration.settings.mcp.servers.items()
    }


def _placed(name: str, settings: MCPServerSettings, configuration: Configuration) -> Configured:
    path = ("mcp", "servers", name)
    origins = [origin for key, origin in configuration.origins.items() if key[:3] == path]
    files = [(origin.layer.file, origin.line) for origin in origins if origin.layer.file is not None]
    if not files:
        return Configured(name, settings)
    return Configured(name, settings, files[0][0], min((line for _, line in files if line), default=None))


def the_one(name: str, servers: Mapping[str, Configured]) -> Configured:
    """The server of that name. Raises ConfigError with the nearest name."""
    if name in servers:
        return servers[name]
    near = get_close_matches(name, servers, 1, 0.5)
    there = ", ".join(list(servers)[:8]) + (" …" if len(servers) > 8 else "")
    hint = f"did you mean {near[0]}?" if near else f"there are: {there}" if there else "handwork mcp add adds one"
    raise ConfigError(f"There is no MCP server {name!r}", hint=hint)


def file_to_write(home: Home, workspace: Path | None) -> Path:
    """The file that a new server goes into: that of a workspace, which others may have made, or the user's own."""
    if workspace is None:
        return home.config / OWN_FILE
    there = (workspace / name for name in SERVERS)
    file = next((path for path in there if path.is_file() or path.is_symlink()), workspace / SERVERS[0])
    if file.parent.resolve() != file.parent:
        raise ConfigError(f"{file} is not changed: it lies behind a link", hint="write the server into it yourself")
    return file
