"""`setup`."""

from __future__ import annotations

import typer

from handwork.cli.commands.parameters import Config


def declare(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(setup)


def setup(config: Config = None) -> None:
    """Choose a model: paste a key, use a server of yours, or fetch a small one."""
    from handwork.cli.setup.setup import run_setup

    raise typer.Exit(run_setup(config))
