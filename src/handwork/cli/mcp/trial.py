"""`handwork mcp test`: connect to a server once, and say what it offers and what is wrong with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from handwork.cli.clean import json_for_terminal
from handwork.cli.mcp.advice import Problem, problems
from handwork.cli.mcp.configured import configured
from handwork.cli.mcp.look import Looked, compare, look
from handwork.cli.mcp.named import check_installed, named_server
from handwork.cli.mcp.show import as_json, draw
from handwork.cli.screen import open_screen
from handwork.cli.workspace import real_folder
from handwork.config import MCPServerSettings, Settings
from handwork.mcp.approved import Approved


def run_test(what: str, workspace: Path | None, config: Path | None, *, as_json_object: bool) -> int:
    """Look at one server; the exit code. Raises ConfigError for what names none."""
    folder = real_folder(workspace)
    settings, servers = configured(config, folder)
    name, server = named_server(what, {each.name: each.settings for each in servers.values()})
    if name not in servers:
        check_installed(name, server, settings.home)
    looked, found = examined(name, server, settings, folder, keeps=name in servers)
    if as_json_object:
        print(json_for_terminal(json.dumps(as_json(looked, found), ensure_ascii=False, indent=2)))
    else:
        draw(looked, found, open_screen(sys.stdout, spins=False))
    return 0 if looked.offer is not None else 1


def examined(
    name: str, server: MCPServerSettings, settings: Settings, folder: Path, *, keeps: bool
) -> tuple[Looked, list[Problem]]:
    """Look at a server and think about it. `keeps`: what a configured server offers at its first connection is what is approved
    of it, as in a run. Raises ConfigError for a record that is damaged."""
    looked = look(name, server, settings, folder, open_screen(sys.stderr).wait)
    approved = Approved(settings.home.config / "mcp")
    compare(looked, approved)
    known = looked.record is not None and looked.record.is_about(server)
    if keeps and looked.offer is not None and not known:
        approved.keep(name, server, looked.offer)
    return looked, problems(looked, settings, folder)
