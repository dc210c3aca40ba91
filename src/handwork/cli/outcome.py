"""How a run ended, for people and for the shell: exit code, last line, and how to go on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from handwork.cli.broken import missing_part
from handwork.cli.clean import clean_for_terminal
from handwork.cli.program import program
from handwork.errors import (
    BudgetExceeded,
    ConfigError,
    HandworkError,
    ModelError,
    SandboxUnavailable,
    TransientModelError,
)
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
_USERINFO = re.compile(r"(?<=://)[^/?#]*@")
_SECRET_PARAMETER = re.compile(r"(?<=[?&])[^=&#]*(?:key|token|secret|sig|pass)[^=&#]*=[^&#]*&?", re.IGNORECASE)


def exit_code(result: RunResult) -> int:
    """The exit code of CONTRACT H."""
    return 2 if isinstance(result.error, ConfigError | SandboxUnavailable) else EXIT_CODES[result.status]


def answer(result: RunResult) -> str:
    """What goes to standard output, clean; '' where the run has no answer."""
    return "" if result.status in _NO_ANSWER else clean_for_terminal(result.output).strip("\n")


def style(result: RunResult) -> str:
    return _STYLES.get(result.status, "yellow")


def last_line(result: RunResult, steps: int, seconds: float, model: str) -> str:
    """Status, steps, time, tokens and cost on one line; '' where an error before the first answer says it all."""
    if result.status is Status.ERROR and not result.usage.total:
        return ""
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


def complaint(error: Exception) -> str:
    """An error for people, clean: what happened, and, where that is known, a line with what to do."""
    if isinstance(error, HandworkError) and error.hint:
        return f"{clean_for_terminal(error.what)}\n→ {clean_for_terminal(error.hint)}"
    return clean_for_terminal(str(error))


def way_on(result: RunResult, again: Mapping[str, str]) -> str:
    """Why the run ended, and on a line of its own what to do and to type next; '' when there is nothing to say.

    Args:
        again: options (name and value, as a shell takes them) that the next run needs as this one did.
    """
    why, advice = _said(result.error)
    go_on = _go_on(result, again)
    what_next = " ".join(part for part in (f"{advice}." if advice and go_on else advice, go_on) if part)
    return "\n".join(
        line
        for line in (clean_for_terminal(why or result.detail), what_next and f"→ {clean_for_terminal(what_next)}")
        if line
    )


def _said(error: BaseException | None) -> tuple[str, str]:
    """What an error says of itself, and what to do; empty where the result's own words are as good."""
    if isinstance(error, HandworkError):
        return error.what, error.hint
    return (missing_part(error) if isinstance(error, ImportError) else None) or ("", "")


def _go_on(result: RunResult, again: Mapping[str, str]) -> str:
    """The command that goes on with the session; '' where there is nothing to go on with."""
    text = _NEXT.get(result.status)
    if text is None or not result.session_id or isinstance(result.error, ConfigError):
        return ""
    options, left_out = _shown({**again, **_other(result)})
    words = [program(), "run", "--session", shlex.quote(result.session_id)]
    words += [f"{name} {value}".rstrip() for name, value in options.items()]
    words += [f'"{text}"'] if text else []
    return f"{_when(result)}{left_out}: {' '.join(words)}"


def chat_again(session: str, again: Mapping[str, str]) -> str:
    """How to go on with a chat later; `session` is '' if it is the last one of the current folder."""
    options, left_out = _shown(again)
    words = [program(), f"--session {shlex.quote(session)}" if session else "-c"]
    words += [f"{name} {value}".rstrip() for name, value in options.items()]
    return f"To go on{left_out}: {' '.join(words)}"


def _other(result: RunResult) -> Mapping[str, str]:
    """What must be different the next time."""
    if isinstance(result.error, BudgetExceeded) and result.error.option:
        name, _, value = result.error.option.partition(" ")
        return {name: value}
    return {}


def _shown(options: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The options without a secret in the base URL, and what to say of one that was left out: a screen is not the place for it."""
    shown = dict(options)
    url = "".join(shlex.split(shown.get("--base-url", "")))
    bare = _SECRET_PARAMETER.sub("", _USERINFO.sub("", url)).rstrip("?&")
    if bare == url.rstrip("?&"):
        return shown, ""
    shown["--base-url"] = shlex.quote(bare)
    return shown, " (the secret in the base URL is not shown)"


def _when(result: RunResult) -> str:
    if result.status is Status.TOKEN_LIMIT:
        return "To go on, best with a --model of a larger context window"
    lasting = isinstance(result.error, ModelError | SandboxUnavailable)
    lasting = lasting and not isinstance(result.error, TransientModelError)
    return "When that is mended" if lasting else "To go on"
