"""`trust`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def declare(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(trust)


def trust(
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="The folder (default: here).")] = None,
    show: Annotated[
        bool,
        typer.Option("--show", help="Only show what it brings along; without DIR, the folders that were decided on."),
    ] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Take an answer back: it is asked about again.")] = False,
) -> None:
    """Trust what a folder brings along for Handwork: configuration, MCP servers, agents, skills."""
    from handwork.cli.trust.command import run_trust

    raise typer.Exit(run_trust(folder, show=show, forget=forget))
