"""`policy list`, `policy forget`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from handwork.cli.commands.parameters import Config

Workspace = Annotated[
    Path | None, typer.Option("--workspace", metavar="DIR", help="The folder in question (default: here).")
]


def declare(app: typer.Typer) -> None:
    """Add the commands."""
    policy = typer.Typer(
        help="What may run without a question: list the rules, take back what you allowed.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    policy.command("list")(list_rules)
    policy.command("forget")(forget)
    app.add_typer(policy, name="policy")


def list_rules(
    workspace: Workspace = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    config: Config = None,
) -> None:
    """List the rules of [policy], in order, and what you allowed for good in this folder."""
    from handwork.cli.policy import print_rules

    print_rules(config, workspace, as_json)


def forget(
    rules: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RULE]...", help="A rule as `policy list` shows it (in quotes), or its number there."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that you allowed in this folder.")] = False,
    workspace: Workspace = None,
) -> None:
    """Take back what you allowed for good; you will be asked again."""
    from handwork.cli.policy import forget_rules

    forget_rules(tuple(rules or ()), everything, workspace)
