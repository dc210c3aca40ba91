"""What a list of sessions shows of each one, folded from its events as they are written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from handwork.events import Event, RunFinished, RunStarted, StepFinished, UsageReported

_TITLE = 80


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One line of the list of sessions.

    `created` and `updated` are UTC, RFC 3339. `status` is that of the last run (CONTRACT A4), `running` while its process
    lives, `interrupted` when that process is gone without finishing it, '' before the first run. `steps` counts the
    session's own steps over all runs (not those of sub-agents). `cost` is in USD with sub-agents; None before
    any request was answered, infinite once one had no known price.
    """

    id: str
    created: str
    updated: str
    workspace: str
    title: str
    agent: str
    model: str
    status: str
    steps: int
    cost: float | None


@dataclass(slots=True)
class Facts:
    """The facts of one session while a journal writes to it.

    `dirty` asks for its row to be written; `moved` for its place in the order of activity too, which costs two indexes and
    so happens where runs begin and end, not at every step.
    """

    workspace: str
    title: str = ""
    agent: str = ""
    model: str = ""
    status: str = ""
    steps: int = 0
    cost: float | None = None
    dirty: bool = False
    moved: bool = False

    def observe(self, event: Event) -> None:
        """Take in what one event says; the row is due only at the ends of runs and steps."""
        if fold := _FOLDS.get(type(event)):
            fold(self, event)


def _run_started(facts: Facts, event: Event) -> None:
    if isinstance(event, RunStarted) and event.parent_call is None:
        facts.title = facts.title or _title(event.request or "")
        facts.agent, facts.model, facts.status = event.agent, event.model, "running"
        facts.workspace = event.workspace or facts.workspace
        facts.dirty = facts.moved = True


def _run_finished(facts: Facts, event: Event) -> None:
    if isinstance(event, RunFinished) and event.parent_call is None:
        facts.status = event.status.value
        facts.dirty = facts.moved = True


def _step_finished(facts: Facts, event: Event) -> None:
    if event.parent_call is None:
        facts.steps += 1
        facts.dirty = True


def _usage_reported(facts: Facts, event: Event) -> None:
    if isinstance(event, UsageReported):
        facts.cost = (facts.cost or 0.0) + (math.inf if event.cost_usd is None else event.cost_usd)


_FOLDS: dict[type[Event], Callable[[Facts, Event], None]] = {
    RunStarted: _run_started,
    RunFinished: _run_finished,
    StepFinished: _step_finished,
    UsageReported: _usage_reported,
}


def _title(request: str) -> str:
    """The request's first line with something on it, without what a terminal would act on."""
    line = next((line for line in request.splitlines() if line.strip()), "").strip()
    line = "".join(char for char in line.replace("\t", " ") if char.isprintable())
    return line if len(line) <= _TITLE else line[: _TITLE - 1].rstrip() + "…"


def now() -> str:
    """This moment as events write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def since(ts: str | None, at: datetime | None = None) -> str:
    """`since 14:02 (3 minutes ago)` of a moment of UTC, for people of this time zone. `at` is now."""
    at = at or datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(ts or "").astimezone()
    except ValueError:
        return "since a time that is not known"
    seconds = (at - moment).total_seconds()
    clock = f"{moment:%H:%M}" if moment.date() == at.astimezone().date() else f"{moment:%Y-%m-%d %H:%M}"
    return f"since {clock}{f' ({_ago(seconds)} ago)' if seconds >= 0 else ''}"


def _ago(seconds: float) -> str:
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if count := int(seconds // size):
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a minute"
