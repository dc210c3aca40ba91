"""`handwork mcp list`: every configured server and what is known of it; none is started."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from handwork.cli.clean import clean_for_terminal, json_for_terminal, one_line, show_exactly
from handwork.cli.columns import width
from handwork.cli.lines import Screen
from handwork.cli.mcp.configured import Configured, configured
from handwork.cli.mcp.state import Known, known_of
from handwork.cli.screen import open_screen
from handwork.cli.workspace import real_folder
from handwork.config import MCPServerSettings
from handwork.config.masking import shown
from handwork.config.mcp_elsewhere import files_of_others

_STYLES = {"ok": "green", "new": "", "off": "dim", "broken": "yellow"}
_WIDEST = 24


def print_servers(workspace: Path | None, config: Path | None, as_json: bool) -> None:
    """Print them. Raises ConfigError."""
    folder = real_folder(workspace)
    settings, servers = configured(config, folder)
    known = {name: known_of(name, each.settings, settings, folder) for name, each in servers.items()}
    if as_json:
        rows = [_json(each, known[name]) for name, each in servers.items()]
        print(json_for_terminal(json.dumps(rows, ensure_ascii=False, indent=2)))
        return
    screen = open_screen(sys.stdout, spins=False)
    if not servers:
        screen.line("No MCP server is configured.")
        screen.line("→ handwork mcp add NAME -- COMMAND ARGS…, or handwork mcp add NAME --url URL", "dim")
    _draw(servers, known, screen)
    if others := list(files_of_others(folder, Path(settings.environ.get("HOME") or "/"))):
        screen.line(
            f"\nOther programs have servers, too: {', '.join(show_exactly(str(file)) for file in others)}", "dim"
        )
        screen.line("→ to take them over: handwork mcp add --from FILE", "dim")
    for notice in settings.notices:
        screen.line(f"\n· {clean_for_terminal(notice)}", "yellow")


def what_runs(server: MCPServerSettings) -> str:
    """The command or address as it is written, with secrets hidden."""
    server = server.written
    if server.type != "stdio":
        return str(shown(server.url))
    return shlex.join([server.command, *shown(server.args)]).replace("'…'", "…")


def _draw(servers: Mapping[str, Configured], known: Mapping[str, Known], screen: Screen) -> None:
    """By the files in which they are written."""
    files: dict[Path | None, list[Configured]] = {}
    for each in servers.values():
        files.setdefault(each.file, []).append(each)
    names = min(max((width(one_line(name, _WIDEST)) for name in servers), default=0), _WIDEST)
    for place, (file, those) in enumerate(files.items()):
        screen.line(("\n" if place else "") + (clean_for_terminal(str(file)) if file else "In no file"), "bold")
        for each in those:
            state, name = known[each.name], one_line(each.name, _WIDEST)
            room = max(screen.columns - names - 5, 30)
            screen.line(f"  {name}{' ' * (names - width(name))}  {one_line(what_runs(each.settings), room)}")
            screen.line(f"  {' ' * names}  {one_line(state.words, 400)}", _STYLES[state.kind])
            if state.mend:
                screen.line(f"  {' ' * names}  → {one_line(state.mend, 400)}")


def _json(server: Configured, state: Known) -> dict[str, object]:
    settings = server.settings
    return {
        "name": server.name,
        "type": settings.type,
        "runs": what_runs(settings),
        "sandbox": settings.sandbox if settings.type == "stdio" else None,
        "disabled": settings.disabled,
        "file": str(server.file) if server.file else None,
        "line": server.line,
        "state": state.kind,
        "words": state.words,
        "mend": state.mend or None,
        "tools": state.tools,
        "approved": state.since or None,
        "login": state.login or None,
        "package": state.package or None,
        "installed": state.installed or None,
    }
