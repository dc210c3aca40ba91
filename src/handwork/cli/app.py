"""The top of the command line: what was typed goes to its command, and every error is said for people."""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Annotated

import typer

from handwork.cli.broken import missing_part, two_lines
from handwork.cli.commands import config, doctor, mcp, models, policy, running, sessions, setup, trust
from handwork.cli.completion import scripts as completion_scripts
from handwork.cli.output import OutputFailed, flush_streams, guarded_streams, silence_stdout
from handwork.cli.route import UsageProblem, route
from handwork.cli.screen import in_width, is_terminal
from handwork.errors import (
    ConfigError,
    HandworkError,
    JournalCorrupt,
    SandboxUnavailable,
    SessionNotFound,
    StoreUnusable,
)

app = typer.Typer(
    name="handwork",
    help='A general-purpose AI agent: give it a task in words.\n\nhandwork "TASK" is short for handwork run "TASK".',
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

_COMPLETION = ("--install-completion", "--show-completion")
"""Answered before anything is routed: a shell's name may stand behind them, or not."""


def run_command_line(arguments: list[str]) -> int:
    """Run one command; returns the exit code (CONTRACT H). Everything that goes wrong is said on standard error."""
    warnings.filterwarnings("ignore", module=r"PIL\.")  # what a decoder thinks of a picture is nobody's business here
    with guarded_streams():
        code = _run(arguments)
        try:
            flush_streams()
        except OutputFailed as error:
            return _complain(error, 1)
        return code


def _run(arguments: list[str]) -> int:
    try:
        if arguments and arguments[0].partition("=")[0] in _COMPLETION:
            return completion_scripts.answer(arguments)
        command = typer.main.get_command(app)
        at_terminal = is_terminal(sys.stdin) and is_terminal(sys.stdout)
        if not arguments and not is_terminal(sys.stdin):
            arguments = ["run"]
        sys.exit(command.main(route(arguments, command, at_terminal=at_terminal), prog_name="handwork"))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except (UsageProblem, ConfigError, SandboxUnavailable, SessionNotFound, StoreUnusable, JournalCorrupt) as error:
        return _complain(error, 2)
    except (HandworkError, OutputFailed) as error:
        return _complain(error, 1)
    except BrokenPipeError:
        silence_stdout()
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # the top of the command line: a bug is shown whole, but acts not on the terminal
        if isinstance(error, ImportError) and (told := missing_part(error)):
            print(two_lines(*told), file=sys.stderr)  # without a module of ours that may lack the same part
            return 2
        return _complain(RuntimeError(f"this is a bug in Handwork.\n{traceback.format_exc()}"), 1)


def _complain(error: Exception, code: int) -> int:
    """Say what happened and, on a line of its own, what to do."""
    from handwork.cli.outcome import complaint

    print(in_width(f"handwork: {complaint(error)}", sys.stderr), file=sys.stderr)
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
    install_completion: Annotated[
        str | None,
        typer.Option("--install-completion", metavar="[SHELL]", help="Complete words in your shell: bash, zsh, fish."),
    ] = None,
    show_completion: Annotated[
        str | None, typer.Option("--show-completion", metavar="[SHELL]", help="Print what that would install.")
    ] = None,
) -> None: ...


for _subject in (running, setup, models, mcp, sessions, config, policy, trust, doctor):
    _subject.declare(app)
