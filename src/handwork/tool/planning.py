"""The tool by which an agent keeps a plan of its work (CONTRACT D7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from handwork.errors import ToolError
from handwork.schema import JSON, Action, Plan, PlanStep, PlanStepStatus, ToolResult
from handwork.schema.plans import OWN_PLAN
from handwork.tool.base import Tool

_READING = ("list", "get")
_NO_ACTIVE = "No active plan. Please specify a plan_id or set an active plan."


class PlanningTool(Tool):
    """Keeps any number of plans, one of them active.

    Each change returns the plan as text and, in its details, `{"plan": …, "active": id or None}`, from which `restore`
    rebuilds the plans when a session is resumed. `execute` raises ToolError for what the model should read.
    """

    name = "planning"
    description = (
        "Keep a plan of your work, which the user sees too. `create` one for a task of several steps, and make it the active "
        "plan; `mark_step` each step in_progress when you begin it and completed when it is done, blocked when it cannot be; "
        "`update` the plan when you learn that it must change: steps whose text stays keep their status."
    )
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "enum": ["create", "update", "list", "get", "set_active", "mark_step", "delete"],
                "description": "What to do.",
            },
            "plan_id": {
                "type": "string",
                "description": "The plan's name, which you choose in `create`. get and mark_step take the active plan without it.",
            },
            "title": {"type": "string", "description": "What the plan is for: needed by create, possible in update."},
            "steps": {
                "type": "array",
                "items": {"type": "string"},
                "description": "All steps, in order: needed by create, possible in update.",
            },
            "step_index": {
                "type": "integer",
                "description": "The step's number as shown, from 0: needed by mark_step.",
            },
            "step_status": {
                "type": "string",
                "enum": PlanStepStatus.get_all_statuses(),
                "description": "The step's new status, for mark_step.",
            },
            "step_notes": {"type": "string", "description": "A note about the step, for mark_step."},
        },
        "required": ["command"],
        "additionalProperties": False,
    }

    def __init__(self, **fields: Any) -> None:
        self._plans: dict[str, Plan] = {}
        self._active: str | None = None
        super().__init__(**fields)

    @property
    def plans(self) -> Mapping[str, Plan]:
        """The plans by their ids, in the order of their making; a copy."""
        return dict(self._plans)

    @property
    def active(self) -> Plan | None:
        """The active plan."""
        return self._plans.get(self._active) if self._active is not None else None

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        kind: Any = "read" if arguments.get("command") in _READING else "write"
        return [Action(kind=kind, resource=OWN_PLAN, repeatable=True)]

    def restore(self, details: Mapping[str, JSON]) -> None:
        if isinstance(deleted := details.get("deleted"), str):
            self._plans.pop(deleted, None)
        if (plan := Plan.from_details(details)) is not None:
            self._plans[plan.plan_id] = plan
        active = details.get("active")
        self._active = active if isinstance(active, str) and active in self._plans else None

    async def execute(
        self,
        command: str,
        plan_id: str | None = None,
        title: str | None = None,
        steps: list[str] | None = None,
        step_index: int | None = None,
        step_status: str | None = None,
        step_notes: str | None = None,
    ) -> ToolResult:
        """Do one command; see `parameters`."""
        commands: dict[str, Callable[[], ToolResult]] = {
            "create": lambda: self._create(plan_id, title, steps),
            "update": lambda: self._update(plan_id, title, steps),
            "list": self._list,
            "get": lambda: ToolResult(output=str(self._wanted(plan_id))),
            "set_active": lambda: self._set_active(plan_id),
            "mark_step": lambda: self._mark_step(plan_id, step_index, step_status, step_notes),
            "delete": lambda: self._delete(plan_id),
        }
        if command not in commands:
            raise ToolError(f"Unrecognized command: {command}. Allowed commands are: {', '.join(commands)}")
        return commands[command]()

    # ---- the commands

    def _create(self, plan_id: str | None, title: str | None, steps: Any) -> ToolResult:
        plan_id = _needed("plan_id", plan_id, "create")
        if plan_id in self._plans:
            raise ToolError(f"A plan with ID '{plan_id}' already exists. Use 'update' to modify existing plans.")
        title = _needed("title", title, "create")
        texts = _texts(steps, "create")
        self._active = plan_id
        plan = Plan(plan_id, title, tuple(PlanStep(text) for text in texts))
        return self._changed(plan, f"Plan created successfully with ID: {plan_id}")

    def _update(self, plan_id: str | None, title: str | None, steps: Any) -> ToolResult:
        plan = self._known(_needed("plan_id", plan_id, "update"))
        if title is None and steps is None:
            raise ToolError("Parameter `title` or `steps` is required for command: update")
        if title is not None:
            plan = replace(plan, title=_needed("title", title, "update"))
        if steps is not None:
            plan = plan.with_steps(_texts(steps, "update"))
        return self._changed(plan, f"Plan updated successfully: {plan.plan_id}")

    def _list(self) -> ToolResult:
        if not self._plans:
            return ToolResult(output="No plans available. Create a plan with the 'create' command.")
        lines = ["Available plans:"]
        for plan in self._plans.values():
            active = " (active)" if plan.plan_id == self._active else ""
            lines.append(f"• {plan.plan_id}{active}: {plan.title} - {plan.progress} steps completed")
        return ToolResult(output="\n".join(lines))

    def _set_active(self, plan_id: str | None) -> ToolResult:
        plan = self._known(_needed("plan_id", plan_id, "set_active"))
        self._active = plan.plan_id
        return self._changed(plan, f"Plan '{plan.plan_id}' is now the active plan.")

    def _mark_step(self, plan_id: str | None, index: Any, status: str | None, notes: str | None) -> ToolResult:
        plan = self._wanted(plan_id)
        if index is None:
            raise ToolError("Parameter `step_index` is required for command: mark_step")
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(plan.steps):
            last = len(plan.steps) - 1
            raise ToolError(f"Invalid step_index: {index}. Valid indices range from 0 to {last}.")
        if status is not None and status not in PlanStepStatus.get_all_statuses():
            valid = ", ".join(PlanStepStatus.get_all_statuses())
            raise ToolError(f"Invalid step_status: {status}. Valid statuses are: {valid}")
        if status is None and notes is None:
            raise ToolError("Parameter `step_status` or `step_notes` is required for command: mark_step")
        plan = plan.with_step(index, PlanStepStatus(status) if status else None, notes)
        return self._changed(plan, f"Step {index} updated in plan '{plan.plan_id}'.")

    def _delete(self, plan_id: str | None) -> ToolResult:
        plan = self._known(_needed("plan_id", plan_id, "delete"))
        del self._plans[plan.plan_id]
        if self._active == plan.plan_id:
            self._active = None
        shown = self.active.to_dict() if self.active else None
        details = {"plan": shown, "active": self._active, "deleted": plan.plan_id}
        return ToolResult(output=f"Plan '{plan.plan_id}' has been deleted.", details=details)

    # ---- plans

    def _changed(self, plan: Plan, said: str) -> ToolResult:
        self._plans[plan.plan_id] = plan
        return ToolResult(output=f"{said}\n\n{plan}", details={"plan": plan.to_dict(), "active": self._active})

    def _wanted(self, plan_id: str | None) -> Plan:
        """The plan of that id, else the active one."""
        if plan_id:
            return self._known(plan_id)
        if (active := self.active) is None:
            raise ToolError(_NO_ACTIVE)
        return active

    def _known(self, plan_id: str) -> Plan:
        plan = self._plans.get(plan_id)
        if plan is None:
            there = f" There are: {', '.join(self._plans)}." if self._plans else ""
            raise ToolError(f"No plan found with ID: {plan_id}.{there}")
        return plan


def _needed(name: str, value: str | None, command: str) -> str:
    if value is None or not value.strip():
        raise ToolError(f"Parameter `{name}` is required for command: {command}")
    return value


def _texts(steps: Any, command: str) -> list[str]:
    good = isinstance(steps, list) and steps and all(isinstance(step, str) and step.strip() for step in steps)
    if not good:
        raise ToolError(f"Parameter `steps` must be a non-empty list of strings for command: {command}")
    return list(steps)
