"""`handwork mcp remove`: a server goes out of the file that names it, and with it what only it needed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from handwork.cli.clean import show_exactly
from handwork.cli.lines import Screen
from handwork.cli.mcp.configured import Configured, configured, the_one
from handwork.cli.mcp.leftovers import Leftover, leftovers
from handwork.cli.screen import open_screen
from handwork.cli.workspace import real_folder
from handwork.config.mcp_write import remove_server
from handwork.errors import ConfigError, HandworkError


def run_remove(name: str, workspace: Path | None, config: Path | None, *, keep: bool = False) -> int:
    """Take it out; the exit code. `keep`: what it needed stays. Raises ConfigError, and then nothing was changed."""
    folder = real_folder(workspace)
    _, servers = configured(config, folder)
    found = the_one(name, servers)
    _take_out(found)
    screen = open_screen(sys.stdout, spins=False)
    screen.line(f"Removed: {show_exactly(name)} (from {show_exactly(str(found.file))})")
    settings, rest = configured(config, folder)
    left = leftovers(found, rest, settings)
    if keep:
        if left:
            screen.line(f"Kept: {', '.join(show_exactly(each.what) for each in left)}", "dim")
        return 0
    return max([_clear(each, screen) for each in left], default=0)


def _take_out(found: Configured) -> None:
    if found.file is None or not remove_server(found.file, found.name):
        where = f"{found.file} names it in a way of its own" if found.file else "it stands in no file"
        raise ConfigError(f"The MCP server {found.name} cannot be taken out: {where}", hint="take it out yourself")


def _clear(left: Leftover, screen: Screen) -> int:
    """Take something away and say so; 1 if it stays."""
    try:
        screen.line(f"· {show_exactly(asyncio.run(_waiting(left)))}")
    except HandworkError as error:
        screen.line(f"! {show_exactly(left.what)} stays: {show_exactly(error.what)}", "yellow")
        if error.hint:
            screen.line(f"  → {show_exactly(error.hint)}")
        return 1
    return 0


async def _waiting(left: Leftover) -> str:
    screen = open_screen(sys.stderr)
    screen.wait(f"taking away {left.what}")
    try:
        return await left.take()
    finally:
        screen.wait("")
