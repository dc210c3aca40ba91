"""`model list`, `model detect`, `model fetch`."""

from __future__ import annotations

from typing import Annotated

import typer

from handwork.cli.commands.parameters import Config


def declare(app: typer.Typer) -> None:
    """Add the commands."""
    models = typer.Typer(
        help="Models that run on this machine, and those you configured.", no_args_is_help=True, rich_markup_mode=None
    )
    models.command("list")(list_models)
    models.command("detect")(detect)
    models.command("fetch")(fetch_model)
    app.add_typer(models, name="model")


def list_models(config: Config = None) -> None:
    """List models: local, configured, by a key, on servers of this machine; what each lacks."""
    from handwork.cli.models import print_models

    print_models(config)


def detect(config: Config = None) -> None:
    """Show where a model is looked for, in order, what is there, and which one is used."""
    from handwork.cli.models import detect_models

    detect_models(config)


def fetch_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as smollm2-135m.")], config: Config = None
) -> None:
    """Download a small model that runs in this process."""
    from handwork.cli.models import fetch_named

    fetch_named(config, name)
