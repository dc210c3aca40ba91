"""`handwork mcp remove`: a server goes out of the file that names it, with what was approved of it."""

from __future__ import annotations

import sys
from pathlib import Path

from handwork.cli.clean import show_exactly
from handwork.cli.mcp.configured import configured, the_one
from handwork.cli.screen import open_screen
from handwork.cli.workspace import real_folder
from handwork.config.mcp_write import remove_server
from handwork.errors import ConfigError


def run_remove(name: str, workspace: Path | None, config: Path | None) -> int:
    """Take it out; the exit code. Raises ConfigError."""
    _, servers = configured(config, real_folder(workspace))
    found = the_one(name, servers)
    if found.file is None or not remove_server(found.file, name):
        where = f"{found.file} names it in a way of its own" if found.file else "it stands in no file"
        raise ConfigError(f"The MCP server {name} cannot be taken out: {where}", hint="take it out yourself")
    open_screen(sys.stdout, spins=False).line(f"Removed: {show_exactly(name)} (from {show_exactly(str(found.file))})")
    return 0
