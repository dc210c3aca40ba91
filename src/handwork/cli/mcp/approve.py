"""`handwork mcp approve`: what a server has changed is shown, and is used from then on if the human says so."""

from __future__ import annotations

import sys
from pathlib import Path

from handwork.cli.clean import show_exactly
from handwork.cli.mcp.advice import problems
from handwork.cli.mcp.configured import configured, the_one
from handwork.cli.mcp.laid_out import laid_out
from handwork.cli.mcp.look import compare, look
from handwork.cli.mcp.show import draw, draw_diff
from handwork.cli.screen import is_terminal, open_screen
from handwork.cli.setup.talk import Left, Talk
from handwork.cli.workspace import real_folder
from handwork.errors import ConfigError
from handwork.mcp.approved import Approved
from handwork.mcp.changes import is_too_long
from handwork.mcp.own_command import own_command
from handwork.tool.wording import counted


def run_approve(name: str, workspace: Path | None, config: Path | None, *, yes: bool) -> int:
    """Show what differs and ask; the exit code. Raises ConfigError."""
    folder = real_folder(workspace)
    settings, servers = configured(config, folder)
    server = the_one(name, servers).settings
    looked = look(name, server, settings, folder, open_screen(sys.stderr).wait)
    screen, approved = open_screen(sys.stdout, spins=False), Approved(settings.home.config / "mcp")
    if looked.offer is None:
        draw(looked, problems(looked, settings, folder), screen)
        return 1
    compare(looked, approved)
    if looked.record is not None and looked.record.is_about(server) and not looked.differs:
        screen.line(f"{name} is as it was approved on {looked.record.when[:10]}: there is nothing to decide.")
        return 0
    file = None
    if is_too_long(looked.diff):
        file = laid_out(looked, settings.home)
        screen.line(f"{name} changed more than can be shown here. All of it is in {show_exactly(str(file))}", "yellow")
    elif looked.diff:
        draw_diff(looked, screen)
    else:
        draw(looked, [], screen)
    if not (_read(name, file) if file else yes or _agreed(name)):
        screen.line(f"Not approved: what {name} changed stays left out.", "yellow")
        return 1
    approved.keep(name, server, looked.offer)
    screen.line(f"Approved: {counted(len(looked.offer.tools), 'tool')} of {name}, as described now.")
    return 0


def _agreed(name: str) -> bool:
    if not _has_human():
        raise ConfigError(
            f"Nobody is there to approve {name}",
            hint=f"look at the above, and then: {own_command('approve', name, '--yes')}",
        )
    return _typed("Approve it as it is now? [y]es, [n]o: ") in ("y", "yes")


def _read(name: str, file: Path) -> bool:
    """Of what was not shown nobody says yes by habit, and no option does: it takes a person and the whole word."""
    if not _has_human():
        raise ConfigError(
            f"What {name} changed was not shown, so --yes does not count for it",
            hint=f"read {file}, and then at a terminal: {own_command('approve', name)}",
        )
    return _typed("Read it. To have all of that used from now on, type approve: ") == "approve"


def _has_human() -> bool:
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def _typed(question: str) -> str:
    try:
        return Talk(open_screen(sys.stdout, spins=False), sys.stdin).ask(question).lower()
    except Left:
        return ""
