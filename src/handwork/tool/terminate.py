"""The tool by which the model ends a run (CONTRACT D5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handwork.schema import JSON, Action
from handwork.tool.base import Tool


class Terminate(Tool):
    """Only says its sentence: that the run ends, and how, is the business of the agent's special-tool hooks."""

    name = "terminate"
    description = (
        "End this run: with success once the request is met, with failure when you cannot go on. "
        "Call it alone, after everything else is done, and put the answer for the user in your text beside the call."
    )
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": ["success", "failure"], "description": "How the work ended."},
        },
        "required": ["status"],
        "additionalProperties": False,
    }

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        return [Action(kind="end", resource="run", repeatable=True)]

    async def execute(self, status: str = "", **_: Any) -> str:
        return f"The interaction has been completed with status: {status}"
