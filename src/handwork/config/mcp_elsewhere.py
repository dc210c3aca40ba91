"""Where other programs keep their MCP servers: such files are found and told, and read when their user says so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from handwork.config.mcp_file import LARGEST_OF_OTHERS

_IN_A_WORKSPACE = (
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".roo/mcp.json",
    ".kiro/settings/mcp.json",
    ".zed/settings.json",
    "opencode.json",
)
_CLAUDE = ".claude.json"
"""Of Claude Code: with servers for everywhere, and for each folder in which it was; and with much else."""
_IN_A_HOME = (
    ".config/Claude/claude_desktop_config.json",
    ".config/Code/User/mcp.json",
    ".cursor/mcp.json",
    ".codeium/windsurf/mcp_config.json",
    ".gemini/settings.json",
    ".copilot/mcp-config.json",
    ".kiro/settings/mcp.json",
    ".lmstudio/mcp.json",
    ".config/zed/settings.json",
    ".config/opencode/opencode.json",
)
_NAMED = (b'"mcpServers"', b'"servers"', b'"context_servers"', b'"mcp"')
_SERVERS = "mcpServers"
_ONE_AT_LEAST = re.compile(rb'"mcpServers"\s*:\s*\{\s*"')
_LARGEST = 1_000_000


def files_of_others(workspace: Path, home: Path) -> Iterator[Path]:
    """The files that are there and speak of servers; `home` is the user's. Nothing of them is believed or used."""
    yield from (file for name in _IN_A_WORKSPACE if _speaks_of_servers(file := workspace / name))
    if _has_servers_for(workspace, file := home / _CLAUDE):
        yield file
    yield from (file for name in _IN_A_HOME if _speaks_of_servers(file := home / name))


def _speaks_of_servers(file: Path) -> bool:
    data = _read(file, _LARGEST)
    return any(name in data for name in _NAMED)


def _has_servers_for(workspace: Path, file: Path) -> bool:
    """Whether there is at least one for this folder: each folder has an empty table of them otherwise."""
    data = _read(file, LARGEST_OF_OTHERS)
    if not _ONE_AT_LEAST.search(data):
        return False
    with suppress(ValueError, RecursionError, AttributeError):
        found = json.loads(data)
        return bool(found.get(_SERVERS) or found.get("projects", {}).get(str(workspace), {}).get(_SERVERS))
    return False


def _read(file: Path, largest: int) -> bytes:
    """What it holds; nothing if it is no file, or too large to be one of these."""
    with suppress(OSError):
        if file.is_file() and file.stat().st_size <= largest:
            return file.read_bytes()
    return b""
