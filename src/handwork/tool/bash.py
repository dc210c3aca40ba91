"""bash: run a command in the session's persistent shell inside the sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handwork.errors import ToolError
from handwork.schema import JSON, Action, ToolResult, scrub
from handwork.tool.base import Tool, ToolContext
from handwork.tool.call_facts import has_results_of, time_left
from handwork.tool.process_end import how_it_ended
from handwork.tool.shell import Outcome, Shell

TIMEOUT = 120
"""Seconds that a command may take unless it says otherwise."""
_NEW_AFTER_RESUME = (
    "This is a new shell: the session was resumed, so variables, functions, current folder and background jobs "
    "of earlier commands are gone (files are kept)."
)
_NEXT_IS_NEW = "The next call starts a new one in the workspace; variables, functions and current folder are lost."


class Bash(Tool):
    """A persistent shell (CONTRACT D2): state is kept over calls, and nothing that a command does hangs it."""

    name = "bash"
    description = (
        "Run a command in a bash shell that stays alive: current folder, variables, functions and background jobs are kept "
        "over calls. Returns standard output and error in order, and the exit code if it is not 0.\n"
        "* Standard input is empty: pass answers by options (-y), a pipe or a heredoc.\n"
        "* A command that takes longer than `timeout` is killed with all its processes. Start servers and long jobs in the "
        "background, with output to a file: `server > server.log 2>&1 &`.\n"
        "* `restart` gives a fresh shell and ends its background jobs."
    )
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "description": "The command; several lines are fine. Needed unless restart is given.",
            },
            "timeout": {
                "type": "integer",
                "minimum": 1,
                "description": f"Seconds that it may take (default {TIMEOUT}).",
            },
            "restart": {"type": "boolean", "description": "Start a fresh shell first (then run the command, if any)."},
        },
    }
    sandboxed = True

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        return [Action(kind="execute", command=scrub(str(arguments.get("command") or "")))]

    async def execute(
        self,
        *,
        context: ToolContext,
        command: str | None = None,
        timeout: float | None = None,
        restart: bool | None = None,
    ) -> ToolResult:
        """Run the command. Errors: ToolError for missing or unusable arguments; SandboxError when the sandbox broke."""
        if command is None and not restart:
            raise ToolError("Parameter `command` is required unless `restart` is true.")
        if command is not None and "\0" in command:
            raise ToolError(
                "`command` holds a NUL character, which no shell accepts: write it as an escape (printf '\\0')."
            )
        shell = context.resource("shell", lambda: Shell(context.sandbox))
        if restart:
            await shell.restart()
            shell.started = True
            if command is None:
                note = "Variables, functions, current folder and background jobs of the old shell are gone."
                return ToolResult(output="The shell has been restarted.", system=note)
        resumed = not shell.started and has_results_of(self.name, context.history)
        seconds = time_left(context, timeout, TIMEOUT)
        outcome = await shell.run(scrub(command or ""), seconds, context.progress)
        return _result(outcome, seconds, [_NEW_AFTER_RESUME] if resumed else [])


def _result(outcome: Outcome, seconds: float, notes: list[str]) -> ToolResult:
    notes += outcome.notes
    output = outcome.output
    if outcome.background:
        output = f"[written by background jobs since the last command]\n{outcome.background.rstrip()}\n[this command]\n{output}"
    if outcome.exit_code:
        output = f"{output.rstrip()}\n[exit code: {outcome.exit_code}]".lstrip()
    if outcome.omitted:
        notes.append(
            f"The middle of the output ({outcome.omitted} bytes) was too long to keep: send it to a file and read parts of it."
        )
    error = _error(outcome, seconds)
    if outcome.shell_ended and not error:
        notes.append(f"The shell has ended (by exit, exec, or an error under set -e or set -u). {_NEXT_IS_NEW}")
    details: dict[str, JSON] = {
        "exit_code": outcome.exit_code,
        "seconds": outcome.seconds,
        "timed_out": outcome.timed_out,
        "omitted_bytes": outcome.omitted,
        "cwd": outcome.folder or None,
    }
    return ToolResult(output=output, error=error, system=" ".join(notes) or None, details=details)


def _error(outcome: Outcome, seconds: float) -> str | None:
    """The kills; an exit code is none."""
    if outcome.timed_out:
        fate = (
            f"The shell did not come back and was killed. {_NEXT_IS_NEW}"
            if outcome.shell_ended
            else "The shell and its state survived."
        )
        return (
            f"The command timed out after {seconds:g} s and was killed with all its processes. {fate} "
            "What it wrote until then follows; its effects may be incomplete."
        )
    if outcome.shell_ended and outcome.exit_code is not None and outcome.exit_code < 0:
        return f"The shell was {how_it_ended(outcome.exit_code)}. {_NEXT_IS_NEW}"
    return None
