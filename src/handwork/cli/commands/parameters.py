"""Parameters that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Read this configuration file.")]
