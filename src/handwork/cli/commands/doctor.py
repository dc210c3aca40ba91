"""`doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from handwork.cli.commands.parameters import Config


def declare(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="With --report: where to write it (default: here).")
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Also try keys, model and proxy: one small request each.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Write a file for a bug report, without keys, names and contents.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    workspace: Annotated[
        Path | None, typer.Option("--workspace", metavar="DIR", help="Where you would work (default: here).")
    ] = None,
    config: Config = None,
) -> None:
    """Look whether everything works here, and say what to do where it does not."""
    from handwork.cli.doctor.run import DoctorOptions, run_doctor

    options = DoctorOptions(online=online, report=report, file=file, json=json, config=config, workspace=workspace)
    raise typer.Exit(run_doctor(options))
