"""`mcp list`, `test`, `add`, `remove`, `approve`, `login`, `logout` and `serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from handwork.cli.commands.mcp_serve import serve
from handwork.cli.commands.mcp_words import AddCommand, TryCommand
from handwork.cli.commands.parameters import Config

Workspace = Annotated[
    Path | None, typer.Option("--workspace", metavar="DIR", help="The folder in question (default: here).")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A server, as `mcp list` names it.")]
Where = Annotated[str, typer.Argument(metavar="NAME|URL", help="A server that is configured, or any other.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def declare(app: typer.Typer) -> None:
    """Add the commands."""
    mcp = typer.Typer(
        help="MCP servers, whose tools the agent can use: add, list, test and approve them, log in; serve our own.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    mcp.command("list")(list_servers)
    mcp.command("test", cls=TryCommand)(try_server)
    mcp.command("add", cls=AddCommand)(add)
    mcp.command("remove")(remove)
    mcp.command("approve")(approve)
    mcp.command("login")(login)
    mcp.command("logout")(logout)
    mcp.command("serve")(serve)
    app.add_typer(mcp, name="mcp")


def list_servers(workspace: Workspace = None, as_json: Json = False, config: Config = None) -> None:
    """List the configured servers. What is known of each is said; none is started."""
    from handwork.cli.mcp.listing import print_servers

    print_servers(workspace, config, as_json)


def try_server(
    server: Annotated[
        str, typer.Argument(metavar='NAME|URL|"COMMAND ARGS"', help="A server that is configured, or any other.")
    ],
    workspace: Workspace = None,
    as_json: Json = False,
    config: Config = None,
) -> None:
    """Connect once, and say what is wrong. What the server offers, and how many tokens that takes, is shown as well."""
    from handwork.cli.mcp.trial import run_test

    raise typer.Exit(run_test(server, workspace, config, as_json_object=as_json))


def add(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="What it is to be called.")] = None,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND ARGS...]", help="How it is started. Left out: install what NAME needs."),
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Where it is asked, in place of a command.")
    ] = None,
    type: Annotated[
        Literal["stdio", "http", "sse"] | None, typer.Option("--type", help="How it is spoken to (default: found out).")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="K=V", help="A variable that it gets; env:NAME takes the value from yours."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", metavar="K=V", help="A header that is sent; as --env, Bearer env:NAME."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", min=0.001, help="Seconds to connect, and for each call.")
    ] = None,
    path: Annotated[
        list[str] | None, typer.Option("--path", metavar="P", help="A folder or file that it may read in the sandbox.")
    ] = None,
    allow_net: Annotated[
        list[str] | None, typer.Option("--allow-net", metavar="HOST", help="A host that it may reach from the sandbox.")
    ] = None,
    cwd: Annotated[
        str | None, typer.Option("--cwd", metavar="DIR", help="Where it starts (default: the workspace).")
    ] = None,
    no_sandbox: Annotated[
        bool, typer.Option("--no-sandbox", help="Start it beside the sandbox, with your rights and your network.")
    ] = False,
    workspace: Annotated[
        bool, typer.Option("--workspace", help="Into this folder's own mcp.json, in place of yours for all folders.")
    ] = False,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Take NAME, or all, from another program's file.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Put it in the place of one of that name.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Install what it needs without asking.")] = False,
    scripts: Annotated[
        bool, typer.Option("--scripts", help="Let packages run what they bring along for their installation.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Take it out again if it does not connect; exit code 1.")
    ] = False,
    no_test: Annotated[bool, typer.Option("--no-test", help="Do not connect to it now.")] = False,
    config: Config = None,
) -> None:
    """Add a server, or install its program. It is written into mcp.json, and connected once."""
    values: dict[str, Any] = locals()
    from handwork.cli.mcp.add import run_add
    from handwork.cli.mcp.entry import AddOptions

    lists = ("command", "env", "header", "path", "allow_net")
    raise typer.Exit(run_add(AddOptions(**(values | {each: tuple(values[each] or ()) for each in lists}))))


def remove(
    name: Name,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep what was approved of it, its login and its installed program.")
    ] = False,
    workspace: Workspace = None,
    config: Config = None,
) -> None:
    """Take a server out of its file. What only it needed goes, too."""
    from handwork.cli.mcp.remove import run_remove

    raise typer.Exit(run_remove(name, workspace, config, keep=keep))


def approve(
    name: Name,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Approve without asking; what changed is shown all the same.")
    ] = False,
    workspace: Workspace = None,
    config: Config = None,
) -> None:
    """Approve what a server has changed. It is shown first."""
    from handwork.cli.mcp.approve import run_approve

    raise typer.Exit(run_approve(name, workspace, config, yes=yes))


def login(
    server: Where,
    scope: Annotated[
        str, typer.Option("--scope", metavar="S", help="The rights to ask for (default: what the server names).")
    ] = "",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    workspace: Workspace = None,
    config: Config = None,
) -> None:
    """Log in at a server, by your browser."""
    from handwork.cli.mcp.login import run_login

    raise typer.Exit(run_login(server, workspace, config, scope=scope, browser=not no_browser))


def logout(server: Where, workspace: Workspace = None, config: Config = None) -> None:
    """Forget the login at a server. It is taken back there as well."""
    from handwork.cli.mcp.login import run_logout

    raise typer.Exit(run_logout(server, workspace, config))
