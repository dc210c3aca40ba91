"""`handwork mcp approve`: what a server has changed is shown, and is used from then on if the human says so."""

from __future__ import annotations

import sys
from pathlib import Path

from handwork.cli.mcp.advice import problems
from handwork.cli.mcp.configured import configured, the_one
from handwork.cli.mcp.look import Looked, compare, look
from handwork.cli.mcp.show import draw, draw_diff
from handwork.cli.screen import is_terminal, open_screen
from handwork.cli.setup.talk import Left, Talk
from handwork.cli.workspace import real_folder
from handwork.errors import ConfigError
from handwork.mcp.approved import Approved
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
    if looked.diff:
        draw_diff(looked, screen)
    else:
        draw(looked, [], screen)
    if not yes and not _agreed(name, looked):
        screen.line(f"Not approved: what {name} changed stays left out.", "yellow")
        return 1
    approved.keep(name, server, looked.offer)
    screen.line(f"Approved: {counted(len(looked.offer.tools), 'tool')} of {name}, as described now.")
    return 0


def _agreed(name: str, looked: Looked) -> bool:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise ConfigError(
            f"Nobody is there to approve {name}", hint=f"look at the above, and then: handwork mcp approve {name} --yes"
        )
    talk = Talk(open_screen(sys.stdout, spins=False), sys.stdin)
    try:
        return talk.ask("Approve it as it is now? [y]es, [n]o: ").lower() in ("y", "yes")
    except Left:
        return False
