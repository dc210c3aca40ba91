"""How a run ended, for people and for the shell: exit code, last line, and how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from handwork.cli.clean import clean_for_terminal
from handwork.cli.program import program
from handwork.errors import BudgetExceeded, ConfigError, ModelError, TransientModelError
from handwork.schema import RunResult, Status

EXIT_CODES: Mapping[Status, int] = {
    Status.FINISHED: 0,
    Status.ERROR: 1,
    Status.MAX_STEPS: 3,
    Status.STUCK: 3,
    Status.TOKEN_LIMIT: 3,
    Status.BUDGET: 3,
    Status.TIMEOUT: 3,
    Status.FAILED: 4,
    Status.WAITING: 5,
    Status.CANCELLED: 130,
}
_NO_ANSWER = {Status.ERROR, Status.WAITING, Status.CANCELLED}
_STYLES = {Status.FINISHED: "green", Status.ERROR: "bold red", Status.FAILED: "red"}
_NEXT = {
    Status.MAX_STEPS: "go on",
    Status.STUCK: "another way to go about it",
    Status.TOKEN_LIMIT: "go on",
    Status.BUDGET: "go on",
    Status.TIMEOUT: "go on",
    Status.WAITING: "your answer",
    Status.CANCELLED: "",
    Status.ERROR: "",
}
"""What to say to the session next; '' where it goes on by itself."""


def exit_code(result: RunResult) -> int:
    """The exit code of CONTRACT H."""
    return 2 if isinstance(result.error, ConfigError) else EXIT_CODES[result.status]


def answer(result: RunResult) -> str:
    """What goes to standard output, clean; '' where the run has no answer."""
    return "" if result.status in _NO_ANSWER else clean_for_terminal(result.output).strip("\n")


def style(result: RunResult) -> str:
    return _STYLES.get(result.status, "yellow")


def last_line(result: RunResult, steps: int, seconds: float, model: str) -> str:
    """Status, steps, time, tokens and cost on one line."""
    parts = [result.status.value, f"{steps} step{'' if steps == 1 else 's'}", _duration(seconds)]
    usage = result.usage
    if usage.total:
        cached = f" ({usage.cached:,} cached)" if usage.cached else ""
        parts.append(f"{usage.input:,}{cached} + {usage.output:,} tokens")
        parts.append(_cost(result.cost, model))
    return " · ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {rest} s"


def _cost(cost: float | None, model: str) -> str:
    if model.startswith("local:"):
        return "free (local model)"
    if cost is None:
        return "cost unknown"
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"


def way_on(result: RunResult, again: Mapping[str, str]) -> str:
    """Why the run ended and what to type next; '' when there is nothing to say.

    Args:
        again: options (name and value, as a shell takes them) that the next run needs as this one did.
    """
    lines = [clean_for_terminal(result.detail)] if result.detail else []
    text = _NEXT.get(result.status)
    if text is not None and result.session_id and not isinstance(result.error, ConfigError):
        words = [program(), "run", "--session", shlex.quote(result.session_id)]
        words += [f"{name} {value}".rstrip() for name, value in {**again, **_other(result)}.items()]
        words += [f'"{text}"'] if text else []
        lines.append(f"{_when(result)}: {' '.join(words)}")
    return "\n".join(lines)


def _other(result: RunResult) -> Mapping[str, str]:
    """What must be different the next time."""
    if isinstance(result.error, BudgetExceeded):
        name, _, value = result.error.option.partition(" ")
        return {name: value}
    return {"--model": "P:M"} if result.status is Status.TOKEN_LIMIT else {}


def _when(result: RunResult) -> str:
    lasting = isinstance(result.error, ModelError) and not isinstance(result.error, TransientModelError)
    return "When that is mended" if lasting else "To go on"
