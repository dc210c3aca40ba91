"""A final answer of a given type (CONTRACT D6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from handwork.errors import ArgumentsError
from handwork.schema import JSON, Action, ToolResult
from handwork.tool.base import Tool
from handwork.tool.result import as_text
from handwork.tool.signature import json_schema_of, problems_of


class CreateChatCompletion(Tool):
    """The model hands over its answer as one `response` of `response_type`.

    The result's output is the answer as text, its details `{"response": …}` the answer as JSON; `value(details)` gives the
    typed value, in a resumed run too.

    Args:
        response_type: any type that has a JSON Schema: str, int, a list, a union, a pydantic model, a dataclass; a subclass
            may set it as its class attribute instead.

    Raises TypeError if the type has no JSON Schema.
    """

    name = "create_chat_completion"
    description = "Give your final answer, in the form that `response` asks for."
    response_type: Any = str

    def __init__(self, response_type: Any = ..., **fields: Any) -> None:
        super().__init__(**fields)
        if response_type is not ...:  # None is a type, too
            self.response_type = response_type
        schema = json_schema_of(self.response_type)
        shared = {name: schema.pop(name) for name in ("$defs",) if name in schema}
        self._adapter: TypeAdapter[Any] = TypeAdapter(self.response_type)
        schema.setdefault("description", "The answer.")
        if "parameters" not in fields and type(self).parameters is Tool.parameters:
            self.parameters = {
                "type": "object",
                "properties": {"response": schema},
                "required": ["response"],
                "additionalProperties": False,
                **shared,
            }

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        return [Action(kind="end", resource="run", repeatable=True)]

    async def execute(self, response: Any) -> ToolResult:
        """Validate the answer; ArgumentsError names what does not fit."""
        value = self._validated(response)
        return ToolResult(output=as_text(value), details={"response": self._adapter.dump_python(value, mode="json")})

    def value(self, details: Mapping[str, JSON]) -> Any:
        """The typed value of a result with these details."""
        return self._validated(details["response"])

    def _validated(self, response: Any) -> Any:
        try:
            return self._adapter.validate_python(response)
        except ValidationError as error:
            try:  # strict types take a date or an enum from JSON, not from a string
                return self._adapter.validate_json(to_json(response))
            except (ValidationError, ValueError):
                raise ArgumentsError("schema", problems_of(error, "response")) from None
