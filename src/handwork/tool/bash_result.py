"""What the model reads of a command or a job: output, exit code, and the truth about what was killed or lost."""

from __future__ import annotations

from handwork.schema import JSON, ToolResult
from handwork.tool.jobs import Job
from handwork.tool.no_text import without_bytes
from handwork.tool.process_end import how_it_ended
from handwork.tool.sandbox_hint import sandbox_hints
from handwork.tool.shell import Outcome
from handwork.tool.spent import as_details
from handwork.tool.terminal_hint import hint_for
from handwork.tool.terminal_job import Rest
from handwork.tool.wording import counted

_NEXT_IS_NEW = "The next call starts a new one in the workspace; variables, functions and current folder are lost."
_RESTS = {
    "waits": "waits for input",
    "quiet": "running; it has written nothing for some seconds and does not read its terminal, as far as can be seen",
    "busy": "still running when the time for this call was up; it was not killed",
}


def command_result(command: str, outcome: Outcome, seconds: float, notes: list[str]) -> ToolResult:
    """The result of a command."""
    notes = [*notes, *outcome.notes]
    output, advice = without_bytes(outcome.output)
    notes += [advice] if advice else []
    if hint := hint_for(command, output, outcome.exit_code):
        notes.append(hint)
    notes += sandbox_hints(output)
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
        **as_details(outcome.spent),
    }
    return ToolResult(output=output, error=error, system=" ".join(notes) or None, details=details)


def _error(outcome: Outcome, seconds: float) -> str | None:
    """The kills; an exit code is none."""
    if outcome.timed_out:
        return (
            f"The command timed out after {seconds:g} s and was killed with all its processes. {outcome.fate} "
            "What it wrote until then follows; its effects may be incomplete."
        )
    if outcome.shell_ended and outcome.exit_code is not None and outcome.exit_code < 0:
        return f"The shell was {how_it_ended(outcome.exit_code)}. {_NEXT_IS_NEW}"
    return None


def job_result(job: Job, text: str, rest: Rest | None, details: dict[str, JSON], notes: list[str]) -> ToolResult:
    """The result of a call about one job: what is new, and how it stands."""
    state = f"ended: {job.state()}" if job.ended else (_RESTS.get(rest or "") or job.state())
    line = f"[job {job.name}: {state}]"
    notes = [*notes, *sandbox_hints(text)]
    body = text.rstrip("\n") or "(nothing new)"
    given: dict[str, JSON] = {"job": job.name, "ended": job.ended, "exit_code": job.exit_code, **details}
    return ToolResult(output=f"{body}\n{line}", system=" ".join(notes) or None, details=given)


def jobs_result(jobs: list[Job], others: int, notes: list[str]) -> ToolResult:
    """The list of all jobs."""
    rows = [
        f"{job.name}  {f'ended: {job.state()}' if job.ended else job.state()}{', unread output' if job.unread else ''}  {job.label}"
        for job in jobs
        if job.unread or not (job.ended and job.told)
    ]
    if others:
        alive = any(not job.ended for job in jobs)
        whose = "of these jobs, or left running by commands" if alive else "that commands left running"
        rows.append(
            f"{counted(others, 'other process', 'other processes')} {whose} (ps shows them, and kill ends them)"
        )
    details: dict[str, JSON] = {"jobs": [{"job": job.name, "command": job.label, "ended": job.ended} for job in jobs]}
    return ToolResult(output="\n".join(rows) or "No jobs.", system=" ".join(notes) or None, details=details)
