"""bash: run a command in the session's persistent shell inside the sandbox, and look after what it left running."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from handwork.errors import ToolError
from handwork.schema import JSON, Action, ToolResult, scrub
from handwork.tool.base import Tool, ToolContext
from handwork.tool.bash_result import command_result, job_result, jobs_result
from handwork.tool.call_facts import has_results_of, time_left
from handwork.tool.jobs import Job
from handwork.tool.shell import Shell
from handwork.tool.spent import as_details, used_since
from handwork.tool.terminal_job import TerminalJob
from handwork.tool.terminal_keys import typed, typed_lines

TIMEOUT = 120
"""Seconds that a command may take unless it says otherwise."""
JOB_TIMEOUT = 30
"""Seconds that a call waits at most until a program in a terminal comes to rest."""
_LIST = ("", "list")
_NEW_AFTER_RESUME = (
    "This is a new shell: the session was resumed, so variables, functions, current folder and background jobs "
    "of earlier commands are gone (files are kept)."
)
_RESTARTED = "Variables, functions, current folder, background jobs and terminals of the old shell are gone."


class Bash(Tool):
    """A persistent shell (CONTRACT D2): state is kept over calls, and nothing that a command does hangs it."""

    name = "bash"
    description = (
        "Run a command in a bash shell that stays alive: current folder, variables, functions and background jobs are kept "
        "over calls. Returns standard output and error in order, and the exit code if it is not 0.\n"
        "* Standard input is empty and there is no terminal: pass answers by options (-y), a pipe or a heredoc. A program that "
        "must be talked to starts with pty: true, in a terminal of its own; the answer names its job (t1).\n"
        "* A command that takes longer than `timeout` is killed with all its processes. Start servers and long jobs in the "
        "background (`server &`): their output is kept, and shown with later calls or read by `job`.\n"
        "* `job` reads what a job has written since the last time (t1, or %1 as the shell names its own); with `input` it types "
        'into a terminal first, with `stop` it ends that job alone. job: "list" shows all jobs.\n'
        "* `restart` gives a fresh shell and ends all jobs."
    )
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "description": "The command; several lines are fine. Needed unless restart or job is given.",
            },
            "timeout": {
                "type": "integer",
                "minimum": 1,
                "description": f"Seconds that it may take (default {TIMEOUT}). With pty or job: how long to wait until the program "
                f"waits for input or ends (default {JOB_TIMEOUT}, or less if it is silent); nothing is killed then.",
            },
            "restart": {"type": "boolean", "description": "Start a fresh shell first (then run the command, if any)."},
            "pty": {"type": "boolean", "description": "Run the command in a terminal of its own, as a job."},
            "job": {
                "type": "string",
                "description": 'The job to read, type into or stop: "t1", "%1"; "list" shows all.',
            },
            "input": {
                "type": "string",
                "description": "What to type into the job's terminal: text, \\n for Enter, \\t, \\e for Escape, \\x03 for Ctrl-C, "
                "\\\\ for a backslash.",
            },
            "stop": {"type": "boolean", "description": "End the job with its processes."},
        },
    }
    sandboxed = True

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        if arguments.get("job") is not None and not arguments.get("input") and not arguments.get("stop"):
            return [Action(kind="read", resource="*", repeatable=True)]
        run = Action(kind="execute", resource="*", command=scrub(str(arguments.get("command") or "")))
        if not arguments.get("input"):
            return [run]
        into, keys = f"terminal {arguments.get('job')}", str(arguments["input"])
        return [run, Action(kind="execute", resource=into, command=typed_lines(keys))]

    async def execute(
        self,
        *,
        context: ToolContext,
        command: str | None = None,
        timeout: float | None = None,
        restart: bool | None = None,
        pty: bool | None = None,
        job: str | None = None,
        input: str | None = None,
        stop: bool | None = None,
    ) -> ToolResult:
        """Run the command, or look after a job. Errors: ToolError for missing or unusable arguments; SandboxError when the
        sandbox broke."""
        _check(command, restart, pty, job, input, stop)
        shell = context.resource("shell", lambda: Shell(context.sandbox))
        resumed = not shell.started and has_results_of(self.name, context.history)
        shell.started = not resumed  # a call that only looks at jobs counts, too
        if job is not None:
            return await _JobCall(context, shell, timeout).run(job, input, stop)
        if restart:
            await shell.restart()
            resumed, shell.started = False, True
            if command is None:
                return ToolResult(output="The shell has been restarted.", system=_RESTARTED)
        notes = [_NEW_AFTER_RESUME] if resumed else []
        text = scrub(command or "")
        if pty:
            return await _JobCall(context, shell, timeout).start(text, notes)
        seconds = time_left(context, timeout, TIMEOUT)
        return command_result(text, await shell.run(text, seconds, context.progress, context.clock), seconds, notes)


def _check(
    command: str | None, restart: bool | None, pty: bool | None, job: str | None, input: str | None, stop: bool | None
) -> None:
    if command is not None and "\0" in command:
        raise ToolError(
            "`command` holds a NUL character, which no shell accepts: write it as an escape (printf '\\0')."
        )
    if job is None:
        if input is not None or stop:
            raise ToolError("`input` and `stop` need `job`: which job is meant?")
        if command is None and (pty or not restart):
            raise ToolError("Parameter `command` is required unless `restart` is true or `job` is given.")
    elif command is not None or restart or pty:
        raise ToolError("`job` goes with `input` or `stop` only: start a command in a call of its own.")
    elif input is not None and stop:
        raise ToolError("Give `input` or `stop`, not both.")
    elif job.strip() in _LIST and (input is not None or stop):
        raise ToolError('`job` must name one job here; job: "list" shows them all.')


class _JobCall:
    """One call about a job. `timeout` is what the model asked for."""

    def __init__(self, context: ToolContext, shell: Shell, timeout: float | None) -> None:
        self._context, self._shell = context, shell
        self._seconds = time_left(context, timeout, JOB_TIMEOUT)
        self._patient = timeout is not None
        self._began = time.monotonic()

    async def start(self, command: str, notes: list[str]) -> ToolResult:
        """Run a command in a terminal; a call that is cancelled ends it."""
        job = await self._shell.open_terminal(command)
        self._shell.started = True
        try:
            return await self._at_rest(job, [*notes, *self._shell.take_notes()])
        except asyncio.CancelledError:
            await asyncio.shield(job.close())
            raise

    async def run(self, name: str, input: str | None, stop: bool | None) -> ToolResult:
        """List the jobs, or read, type into or stop one."""
        notes = await self._shell.look()
        if name.strip() in _LIST:
            return jobs_result(list(self._shell.jobs), len(await self._shell.others()), notes)
        job = self._shell.jobs.find(name)
        if stop:
            return await self._stopped(job, notes)
        if input is not None:
            if not isinstance(job, TerminalJob):
                raise ToolError(
                    f"Job {job.name} has no terminal to type into: start it with pty: true, or give it a pipe or a heredoc."
                )
            await job.type(typed(scrub(input)))
        if isinstance(job, TerminalJob):
            return await self._at_rest(job, notes)
        if self._patient:
            await self._until_ended(job, notes)
        return job_result(job, job.fresh(), None, self._details(), notes)

    async def _at_rest(self, job: TerminalJob, notes: list[str]) -> ToolResult:
        used = await job.process.spent()
        rest = await job.rest(self._seconds, self._context.progress, patient=self._patient)
        job.told = job.told or job.ended
        spent = used_since(used, await job.process.spent())
        return job_result(job, job.fresh(), rest, {**self._details(), **as_details(spent)}, notes)

    async def _stopped(self, job: Job, notes: list[str]) -> ToolResult:
        if not job.ended:
            await job.stop()
            await self._shell.look()
        job.told = True
        return job_result(job, job.fresh(), None, self._details(), notes)

    async def _until_ended(self, job: Job, notes: list[str]) -> None:
        until = time.monotonic() + self._seconds
        pause = 0.02
        while not job.ended and time.monotonic() < until:
            await asyncio.sleep(min(pause, max(until - time.monotonic(), 0)))
            pause = min(pause * 2, 0.5)
            notes += await self._shell.look()

    def _details(self) -> dict[str, JSON]:
        return {"seconds": round(time.monotonic() - self._began, 3)}
