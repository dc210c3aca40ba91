"""Where other programs keep their MCP servers: such files are found and told, and read when their user says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_IN_A_WORKSPACE = (
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".roo/mcp.json",
    ".kiro/settings/mcp.json",
    ".zed/settings.json",
    "opencode.json",
)
_IN_A_HOME = (
    ".claude.json",
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
_LARGEST = 1_000_000


def files_of_others(workspace: Path, home: Path) -> Iterator[Path]:
    """The files that are there and speak of servers; `home` is the user's. Nothing of them is believed or used."""
    for folder, names in ((workspace, _IN_A_WORKSPACE), (home, _IN_A_HOME)):
        yield from (file for name in names if _speaks_of_servers(file := folder / name))


def _speaks_of_servers(file: Path) -> bool:
    with suppress(OSError):
        if file.is_file() and file.stat().st_size <= _LARGEST:
            data = file.read_bytes()
            return any(name in data for name in _NAMED)
    return False
