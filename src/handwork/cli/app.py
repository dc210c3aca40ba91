"""The commands and their options; each hands over to the file of its name."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Annotated, Literal

import typer

from handwork.cli.options import RunOptions
from handwork.cli.output import OutputFailed, flush_streams, guarded_streams, silence_stdout
from handwork.cli.route import UsageProblem, route
from handwork.cli.screen import is_terminal
from handwork.errors import ConfigError, HandworkError, SessionNotFound
from handwork.schema import Mode

app = typer.Typer(
    name="handwork",
    help='A general-purpose AI agent: give it a task in words.\n\nhandwork "TASK" is short for handwork run "TASK".',
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
sessions = typer.Typer(help="What was done: list sessions, show one.", no_args_is_help=True, rich_markup_mode=None)
models = typer.Typer(
    help="Models that run on this machine, and those you configured.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(sessions, name="sessions")
app.add_typer(models, name="model")

Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Read this configuration file.")]


def run_command_line(arguments: list[str]) -> int:
    """Run one command; returns the exit code (CONTRACT H). Everything that goes wrong is said on standard error."""
    with guarded_streams():
        code = _run(arguments)
        try:
            flush_streams()
        except OutputFailed as error:
            return _complain(error, 1)
        return code


def _run(arguments: list[str]) -> int:
    try:
        command = typer.main.get_command(app)
        if not arguments and not is_terminal(sys.stdin):
            arguments = ["run"]
        sys.exit(command.main(route(arguments, command), prog_name="handwork"))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except (UsageProblem, ConfigError, SessionNotFound) as error:
        return _complain(error, 2)
    except (HandworkError, OutputFailed) as error:
        return _complain(error, 1)
    except BrokenPipeError:
        silence_stdout()
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception:  # the top of the command line: a bug is shown whole, but nothing in it acts on the terminal
        return _complain(RuntimeError(f"this is a bug in Handwork.\n{traceback.format_exc()}"), 1)


def _complain(error: Exception, code: int) -> int:
    from handwork.cli.clean import clean_for_terminal

    print(f"handwork: {clean_for_terminal(str(error))}", file=sys.stderr)
    return code


def _print_version(wanted: bool) -> None:
    if wanted:
        from handwork import __version__

        typer.echo(f"handwork {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None: ...


@app.command()
def run(
    task: Annotated[
        str | None, typer.Argument(metavar="TASK", help="What to do; read from standard input if it is a pipe.")
    ] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", metavar="TEXT", help="The same as TASK.")] = None,
    agent: Annotated[str, typer.Option("--agent", metavar="NAME", help="Who does it: manus, swe, toolcall.")] = "manus",
    model: Annotated[
        str | None, typer.Option("--model", metavar="P:M", help="provider:model, such as openai:gpt-5.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="Any OpenAI-compatible server.")
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option("--workspace", metavar="DIR", help="Where to work (default: here).")
    ] = None,
    max_steps: Annotated[int | None, typer.Option("--max-steps", min=1, help="End after so many steps.")] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="USD", min=0, help="What the session may cost.")
    ] = None,
    max_total_tokens: Annotated[
        int | None, typer.Option("--max-total-tokens", min=1, help="Tokens of the whole session.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", min=0.001, help="End after so many seconds.")
    ] = None,
    sandbox: Annotated[
        Literal["auto", "bwrap", "host"] | None,
        typer.Option("--sandbox", help="Where tools run; host is this machine, unprotected."),
    ] = None,
    net: Annotated[bool, typer.Option("--net", help="Let the sandbox reach the network.")] = False,
    approve: Annotated[
        Mode | None, typer.Option("--approve", help="Who approves calls (default: auto in a sandbox, ask on the host).")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Go on with this session, or name a new one.")
    ] = None,
    go_on: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with the last session of this workspace.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer only.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one event a line on standard output, and nothing else.")
    ] = False,
    config: Config = None,
) -> None:
    """Work on a task until it is done, and print the answer."""
    from handwork.cli.run import run_task

    options = RunOptions(
        task=task,
        prompt=prompt,
        agent=agent,
        model=model,
        base_url=base_url,
        workspace=workspace,
        max_steps=max_steps,
        budget=budget,
        max_total_tokens=max_total_tokens,
        timeout=timeout,
        sandbox=sandbox,
        net=net,
        approve=approve,
        session=session,
        go_on=go_on,
        quiet=quiet,
        json=json,
        config=config,
    )
    raise typer.Exit(run_task(options))


@app.command()
def demo() -> None:
    """Do a small task on a small model that runs in this process: no key, no account."""
    from handwork.cli.demo import run_demo

    raise typer.Exit(run_demo())


@sessions.command("list")
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


@sessions.command("show")
def show_session(
    id: Annotated[str, typer.Argument(metavar="ID", help="A session's id, as `sessions list` names it.")],
    json: Annotated[bool, typer.Option("--json", help="The events as they are stored, one a line.")] = False,
    config: Config = None,
) -> None:
    """Show what happened in a session, in order."""
    from handwork.cli.sessions import print_session

    print_session(config, id, json)


@models.command("list")
def list_models(config: Config = None) -> None:
    """List local and configured models: which can be used, and what the others lack."""
    from handwork.cli.models import print_models

    print_models(config)


@models.command("fetch")
def fetch_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as smollm2-135m.")], config: Config = None
) -> None:
    """Download a small model that runs in this process."""
    from handwork.cli.models import fetch_named

    fetch_named(config, name)
