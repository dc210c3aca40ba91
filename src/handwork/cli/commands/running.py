"""`run`, `chat` and `demo`: what makes an agent work."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from handwork.cli.commands.parameters import AllowNet, Config, Net, SandboxName, WorkHere

_OF_A_RUN = ("prompt", "quiet", "json")
"""Options that make no sense in a conversation."""


def declare(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(
        "run",
        help="Work on a task until it is done, and print the answer. "
        "What comes through standard input is the task, or a part of it.",
    )(_with_run_options(_run))
    app.command("chat", help="Work on one thing after another, in a conversation at the terminal.")(
        _without(_OF_A_RUN, _with_run_options(_chat))
    )
    app.command()(demo)


def _without(names: Collection[str], command: Callable[..., None]) -> Callable[..., None]:
    """The command with fewer options: the others keep their defaults."""
    signature = inspect.signature(command, eval_str=True)
    kept = [each for each in signature.parameters.values() if each.name not in names]
    vars(command)["__signature__"] = signature.replace(parameters=kept)
    return command


def _run(options: Callable[[], Any], workspace: Path | None) -> int:
    from handwork.cli.run import run_task

    return run_task(options())


def _chat(options: Callable[[], Any], workspace: Path | None) -> int:
    from handwork.cli.chat.start import chat

    return chat(options, workspace)


def demo() -> None:
    """Do a small task on a small model that runs in this process: no key, no account."""
    from handwork.cli.demo import run_demo

    raise typer.Exit(run_demo())


def _with_run_options(start: Callable[[Callable[[], Any], Path | None], int]) -> Callable[..., None]:
    """A command that takes the options of a run; they are declared once, for all commands that have them.

    `start` is given how to make the RunOptions: they bring the settings along, and help, completion and a chat's first prompt
    are there without them; and the workspace as it was typed.
    """

    def command(
        task: Annotated[str | None, typer.Argument(metavar="TASK", help="What to do, in words.")] = None,
        prompt: Annotated[str | None, typer.Option("--prompt", metavar="TEXT", help="The same as TASK.")] = None,
        agent: Annotated[
            str, typer.Option("--agent", metavar="NAME", help="Who does it: manus, swe, toolcall.")
        ] = "manus",
        model: Annotated[
            str | None, typer.Option("--model", metavar="P:M", help="provider:model, such as openai:gpt-5.")
        ] = None,
        base_url: Annotated[
            str | None, typer.Option("--base-url", metavar="URL", help="Any OpenAI-compatible server.")
        ] = None,
        workspace: WorkHere = None,
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
        sandbox: SandboxName = None,
        net: Net = False,
        allow_net: AllowNet = None,
        approve: Annotated[
            Literal["ask", "auto", "read-only"] | None,
            typer.Option("--approve", help="Who approves calls (default: auto in a sandbox, ask on the host)."),
        ] = None,
        image: Annotated[
            list[Path] | None,
            typer.Option("--image", metavar="FILE", help="A picture that belongs to the task; may be given again."),
        ] = None,
        mcp: Annotated[
            list[str] | None,
            typer.Option(
                "--mcp", metavar='NAME|URL|"COMMAND ARGS"', help="Use this MCP server as well; may be given again."
            ),
        ] = None,
        session: Annotated[
            str | None, typer.Option("--session", metavar="ID", help="Go on with this session, or name a new one.")
        ] = None,
        go_on: Annotated[
            bool, typer.Option("--continue", "-c", help="Go on with the last session of this workspace.")
        ] = False,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer only, and warnings.")] = False,
        json: Annotated[
            bool, typer.Option("--json", help="Print one event a line on standard output, and nothing else.")
        ] = False,
        config: Config = None,
    ) -> None:
        values = locals()
        raise typer.Exit(start(lambda: _options(values), workspace))

    return command


def _options(values: dict[str, Any]) -> Any:
    from handwork.cli.options import RunOptions
    from handwork.schema import Mode

    given = {name: values[name] for name in RunOptions.__dataclass_fields__ if name in values}
    given |= {"approve": Mode(given["approve"]) if given["approve"] else None, "image": tuple(given["image"] or ())}
    given |= {name: tuple(given[name] or ()) for name in ("allow_net", "mcp")}
    return RunOptions(**given)
