"""What is known of a server without starting it: whether it could start, what was approved of it, whether one is logged in."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from handwork.cli.mcp.visible import hidden_program, in_the_sandbox
from handwork.config import MCPServerSettings, Settings
from handwork.config.settings import Home
from handwork.errors import ConfigError, MCPUnavailable
from handwork.mcp.approved import Approved
from handwork.mcp.lacking import Lacking
from handwork.mcp.programs import find, package_of
from handwork.tool.wording import counted

Kind = Literal["ok", "new", "off", "broken"]


@dataclass(frozen=True, slots=True)
class Known:
    """kind: ok (it was connected before), new (never yet), off (disabled), broken (it cannot start as it is: `mend` says what helps).

    tools: how many were approved, and `since` when; None and '' where nothing was."""

    kind: Kind
    words: str
    mend: str = ""
    tools: int | None = None
    since: str = ""


def known_of(name: str, server: MCPServerSettings, settings: Settings, workspace: Path) -> Known:
    """Look at files only."""
    if server.disabled:
        return Known("off", "disabled")
    if broken := _broken(name, server, settings.home, workspace):
        return broken
    try:
        record = Approved(settings.home.config / "mcp").record(name)
    except ConfigError as error:
        return Known("broken", error.what, error.hint)
    beside = "" if server.type != "stdio" or server.sandbox else " · beside the sandbox"
    if record is None or not record.is_about(server):
        return Known("new", f"never connected{beside}")
    tools = len(record.offer.tools)
    words = f"{counted(tools, 'tool')}, approved {record.when[:10]}{beside}"
    return Known("ok", words, "", tools, record.when)


def _broken(name: str, server: MCPServerSettings, home: Home, workspace: Path) -> Known | None:
    if server.unset:
        error = Lacking(name, server.unset).failure()
        return Known("broken", error.what.removeprefix(f"The MCP server {name} "), error.hint)
    if server.type != "stdio":
        return None
    try:
        package = package_of(server)
    except MCPUnavailable as error:
        return Known("broken", error.what, error.hint)
    if package is not None:
        if find(package, home):
            return None
        return Known("broken", "not installed", f"handwork mcp add {name} installs it")
    if hidden := hidden_program(server, workspace):
        return Known(
            "broken", f"{hidden.command} cannot be seen in the sandbox", f"handwork mcp test {name} says what to do"
        )
    command = str(Path(server.command).expanduser()) if server.command.startswith("~") else server.command
    if not in_the_sandbox(command) and shutil.which(command) is None and not (workspace / command).is_file():
        return Known("broken", f"there is no program {server.command}", "install it, or correct its entry")
    return None
