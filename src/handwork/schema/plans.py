"""Plans: steps with their statuses, as data and as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from pydantic import TypeAdapter, ValidationError

from handwork.schema.values import JSON, scrub

OWN_PLAN = "agent://plan"
"""The resource that stands for an agent's own plan: writing it touches nothing but the agent's memory, so nobody is asked."""


class PlanStepStatus(StrEnum):
    """How far a step of a plan is."""

    NOT_STARTED = "not_started"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    BLOCKED = "blocked"

    @property
    def mark(self) -> str:
        """The sign before a step of this status."""
        return _MARKS[self]

    @classmethod
    def get_all_statuses(cls) -> list[str]:
        return [status.value for status in cls]

    @classmethod
    def get_active_statuses(cls) -> list[str]:
        """The statuses of steps that are still to be done."""
        return [cls.NOT_STARTED.value, cls.IN_PROGRESS.value]

    @classmethod
    def get_status_marks(cls) -> dict[str, str]:
        return {status.value: status.mark for status in cls}


_MARKS = {
    PlanStepStatus.NOT_STARTED: "[ ]",
    PlanStepStatus.IN_PROGRESS: "[→]",
    PlanStepStatus.COMPLETED: "[✓]",
    PlanStepStatus.BLOCKED: "[!]",
}


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step: what is to be done, how far it is, and notes about it."""

    text: str
    status: PlanStepStatus = PlanStepStatus.NOT_STARTED
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan of several steps; frozen: a change makes another one. `str(plan)` is its text form."""

    plan_id: str
    title: str
    steps: tuple[PlanStep, ...] = ()

    def count(self, status: PlanStepStatus) -> int:
        """How many steps have this status."""
        return sum(step.status is status for step in self.steps)

    @property
    def progress(self) -> str:
        """`2/5`: the completed steps of all."""
        return f"{self.count(PlanStepStatus.COMPLETED)}/{len(self.steps)}"

    @property
    def current(self) -> PlanStep | None:
        """The step in progress, else the next one that has not started; None if there is none."""
        for status in (PlanStepStatus.IN_PROGRESS, PlanStepStatus.NOT_STARTED):
            if (found := next((step for step in self.steps if step.status is status), None)) is not None:
                return found
        return None

    def with_steps(self, texts: Sequence[str]) -> Plan:
        """The plan with these steps; one whose text was there already keeps its status and notes."""
        old = list(self.steps)
        steps = []
        for text in texts:
            kept = next((step for step in old if step.text == text), None)
            if kept is not None:
                old.remove(kept)
            steps.append(kept or PlanStep(text))
        return replace(self, steps=tuple(steps))

    def with_step(self, index: int, status: PlanStepStatus | None = None, notes: str | None = None) -> Plan:
        """The plan with a step marked; None leaves what is there. Raises IndexError."""
        step = self.steps[index]
        step = replace(step, status=status or step.status, notes=step.notes if notes is None else notes)
        return replace(self, steps=(*self.steps[:index], step, *self.steps[index + 1 :]))

    def to_dict(self) -> dict[str, JSON]:
        """The plan as JSON: plan_id, title, steps of text, status, notes."""
        dumped: dict[str, JSON] = _plans().dump_python(self, mode="json")
        return dumped

    @classmethod
    def from_details(cls, details: Mapping[str, JSON] | None) -> Plan | None:
        """The plan that a result's details hold under `plan`; None if they hold none."""
        found = (details or {}).get("plan")
        if not isinstance(found, Mapping):
            return None
        try:
            return _plans().validate_python(found)
        except ValidationError:
            return None

    def __str__(self) -> str:
        head = f"Plan: {_line(self.title)} (ID: {_line(self.plan_id)})"
        counts = ", ".join(f"{self.count(status)} {status.value.replace('_', ' ')}" for status in _COUNTED)
        done, total = self.count(PlanStepStatus.COMPLETED), len(self.steps)
        share = f"{100 * done / total:.1f}%" if total else "0%"
        lines = [head, "=" * len(head), "", f"Progress: {done}/{total} steps completed ({share})"]
        lines += [f"Status: {counts}", "", "Steps:"]
        for index, step in enumerate(self.steps):
            lines.append(f"{index}. {step.status.mark} {_line(step.text)}")
            if step.notes:
                lines.append(f"   Notes: {_line(step.notes)}")
        return "\n".join(lines)


_COUNTED = (
    PlanStepStatus.COMPLETED,
    PlanStepStatus.IN_PROGRESS,
    PlanStepStatus.BLOCKED,
    PlanStepStatus.NOT_STARTED,
)


@cache
def _plans() -> TypeAdapter[Plan]:
    """Built at the first use: most programs never make a plan."""
    return TypeAdapter(Plan)


def _line(text: str) -> str:
    """A text in one line, as the form has one line a step."""
    return " ".join(scrub(text).split())
