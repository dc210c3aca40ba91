"""`config show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from handwork.cli.commands.parameters import Config


def declare(app: typer.Typer) -> None:
    """Add the command."""
    config = typer.Typer(
        help="The configuration: which files are read, and what comes of them.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    config.callback()(lambda: None)  # so that `show` is a command of its own while it is the only one
    config.command("show")(show)
    app.add_typer(config, name="config")


def show(
    config: Config = None,
    workspace: Annotated[
        Path | None, typer.Option("--workspace", metavar="DIR", help="As a run there would see it (default: here).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show every setting with where it came from; keys and passwords are hidden."""
    from handwork.cli.config import print_configuration

    print_configuration(config, workspace, as_json)
