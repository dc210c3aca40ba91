"""What is known of a server without starting it: whether it could start, what was approved of it, whether one is logged in."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from handwork.cli.mcp.visible import hidden_program, in_the_sandbox
from handwork.config import MCPServerSettings, Settings
from handwork.errors import HandworkError
from handwork.mcp.address import address_of
from handwork.mcp.approved import Approved
from handwork.mcp.lacking import Lacking
from handwork.mcp.own_command import own_command
from handwork.mcp.programs import Installed, Package, find, package_of, program_of
from handwork.tool.wording import counted

Kind = Literal["ok", "new", "off", "broken"]


@dataclass(frozen=True, slots=True)
class Known:
    """kind: ok (it was connected before), new (never yet), off (disabled), broken (it cannot start as it is: `mend` says what helps).

    tools: how many were approved, and `since` when; None and '' where nothing was.
    login: none, kept, ended; '' for a server at which nobody logs in. package: what its command would fetch; installed: its version
    that lies ready."""

    kind: Kind
    words: str
    mend: str = ""
    tools: int | None = None
    since: str = ""
    login: str = ""
    package: str = ""
    installed: str = ""


def known_of(name: str, server: MCPServerSettings, settings: Settings, workspace: Path) -> Known:
    """Look at files only."""
    try:
        package = package_of(server)
        found = find(package, settings.home) if package else None
        login = _login(name, server, settings)
        known = _judged(name, server, settings, workspace, package, found, login)
    except HandworkError as error:
        return Known("off", "disabled") if server.disabled else Known("broken", error.what, error.hint)
    return replace(
        known, login=login, package=package.name if package else "", installed=found.version if found else ""
    )


def _judged(
    name: str,
    server: MCPServerSettings,
    settings: Settings,
    workspace: Path,
    package: Package | None,
    found: Installed | None,
    login: str,
) -> Known:
    """What its state is. Raises HandworkError for what is wrong in a way of its own."""
    if server.disabled:
        return Known("off", "disabled")
    if broken := _broken(name, server, workspace, package, found):
        return broken
    if login == "ended":
        return Known("broken", "its login has ended", own_command("login", name))
    record = Approved(settings.home.config / "mcp").record(name, server)
    more = " · beside the sandbox" if server.type == "stdio" and not server.sandbox else ""
    more += f" · {found.version} installed" if found else " · logged in" if login == "kept" else ""
    if record is None or not record.is_about(server):
        return Known("new", f"never connected{more}")
    tools = len(record.offer.tools)
    words = f"{counted(tools, 'tool')}, approved {record.when[:10]}{more}"
    return Known("ok", words, tools=tools, since=record.when)


def _login(name: str, server: MCPServerSettings, settings: Settings) -> str:
    """As Known has it. Raises MCPUnavailable."""
    if server.type == "stdio" or server.unset:
        return ""
    from handwork.mcp.tokens import TokenStore  # most lists need none

    address = address_of(name, server, settings.environ)
    return "" if address.own_login else TokenStore(settings.home.config / "mcp", address).state()


def _broken(
    name: str, server: MCPServerSettings, workspace: Path, package: Package | None, found: Installed | None
) -> Known | None:
    if server.unset:
        error = Lacking(name, server.unset).failure()
        return Known("broken", error.what.removeprefix(f"The MCP server {name} "), error.hint)
    if server.type != "stdio":
        return None
    if package is not None:
        return _not_installed(name, package, found)
    if hidden := hidden_program(server, workspace):
        return Known(
            "broken", f"{hidden.command} cannot be seen in the sandbox", f"{own_command('test', name)} says what to do"
        )
    command = str(Path(server.command).expanduser()) if server.command.startswith("~") else server.command
    if not in_the_sandbox(command) and shutil.which(command) is None and not (workspace / command).is_file():
        return Known("broken", f"there is no program {server.command}", "install it, or correct its entry")
    return None


def _not_installed(name: str, package: Package, found: Installed | None) -> Known | None:
    if found is None:
        return Known("broken", "not installed", f"{own_command('add', name)} installs it")
    program_of(found, package)
    if gone := next((path for path in found.paths if not Path(path).exists()), ""):
        return Known(
            "broken", f"what is installed needs {gone}, which is gone", f"{own_command('add', name)} installs it"
        )
    return None
