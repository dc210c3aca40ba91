"""Parameters that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Read this configuration file.")]
WorkHere = Annotated[Path | None, typer.Option("--workspace", metavar="DIR", help="Where to work (default: here).")]
SandboxName = Annotated[
    Literal["auto", "bwrap", "landlock", "host", "docker", "daytona"] | None,
    typer.Option("--sandbox", help="Where tools run; host is this machine, unprotected."),
]
Net = Annotated[bool, typer.Option("--net", help="Let the sandbox reach the network.")]
AllowNet = Annotated[
    list[str] | None,
    typer.Option("--allow-net", metavar="HOST", help="Let the sandbox reach this host; may be given again."),
]
