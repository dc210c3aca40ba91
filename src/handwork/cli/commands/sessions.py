"""`sessions list`, `sessions show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from handwork.cli.commands.parameters import Config


def declare(app: typer.Typer) -> None:
    """Add the commands."""
    sessions = typer.Typer(help="What was done: list sessions, show one.", no_args_is_help=True, rich_markup_mode=None)
    sessions.command("list")(list_sessions)
    sessions.command("show")(show_session)
    app.add_typer(sessions, name="sessions")


def list_sessions(
    workspace: Annotated[
        Path | None, typer.Option("--workspace", metavar="DIR", help="Only those of this workspace.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many, the last active first.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    config: Config = None,
) -> None:
    """List sessions, the last active first."""
    from handwork.cli.sessions import print_sessions

    print_sessions(config, workspace, limit, json)


def show_session(
    id: Annotated[str, typer.Argument(metavar="ID", help="A session's id, as `sessions list` names it.")],
    json: Annotated[bool, typer.Option("--json", help="The events as they are stored, one a line.")] = False,
    config: Config = None,
) -> None:
    """Show what happened in a session, in order."""
    from handwork.cli.sessions import print_session

    print_session(config, id, json)
