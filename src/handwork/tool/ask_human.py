"""The tool by which the model asks its human (CONTRACT D4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handwork.schema import JSON, Action
from handwork.tool.base import Tool, ToolContext


class AskHuman(Tool):
    """Puts the question through the session's `ask` door and gives the answer back; headless, the door raises Waiting.

    Asking again is the same as asking once, so a resumed run may put a question again that nobody answered.
    """

    name = "ask_human"
    description = (
        "Ask the human who gave the task, and wait for the answer. Use it only when you need a decision, a fact or a "
        "permission that you cannot find yourself."
    )
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {
            "inquire": {
                "type": "string",
                "minLength": 1,
                "description": "The question, with all that is needed to answer it.",
            },
        },
        "required": ["inquire"],
        "additionalProperties": False,
    }

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        return [Action(kind="ask", resource="human", repeatable=True)]

    async def execute(self, inquire: str, context: ToolContext) -> str:
        return await context.ask(inquire)
