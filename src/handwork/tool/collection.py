"""The tools of one agent, by name (CONTRACT D11)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Self

from handwork.errors import ToolError
from handwork.schema import JSON, ToolResult
from handwork.tool.arguments import check
from handwork.tool.base import Tool, ToolContext
from handwork.tool.function import NAME, as_tool
from handwork.tool.result import normalise


class ToolCollection:
    """Tools in the order in which they were added; Tools, Tool classes and functions are accepted.

    Raises ValueError for two tools of one name and for a name that providers refuse, at construction and in add_tool alike:
    a tool never hides another silently. TypeError for what is no tool.
    """

    def __init__(self, *tools: Any) -> None:
        self._tools: dict[str, Tool] = {}
        self._params: tuple[dict[str, JSON], ...] | None = None
        self._shown: list[tuple[Tool, str, Mapping[str, JSON]]] = []
        self.add_tools(*tools)

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._tools.values())

    @property
    def tool_map(self) -> Mapping[str, Tool]:
        """The tools by name; to change them use add_tool and remove_tool."""
        return MappingProxyType(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, item: object) -> bool:
        """Whether there is a tool of that name, or that very tool."""
        if isinstance(item, str):
            return item in self._tools
        return any(item is tool for tool in self._tools.values())

    def __repr__(self) -> str:
        return f"ToolCollection({', '.join(self._tools)})"

    def get_tool(self, name: str) -> Tool | None:
        """The tool of that name, None if there is none."""
        return self._tools.get(name)

    def nearest(self, name: str) -> list[str]:
        """Up to three names that a wrong name may have meant, the best first; case does not count."""
        by_case = {known.lower(): known for known in self._tools}
        return [by_case[near] for near in difflib.get_close_matches(name.lower(), by_case, 3)]

    def add_tool(self, tool: Any) -> Self:
        return self.add_tools(tool)

    def add_tools(self, *tools: Any) -> Self:
        """Add all of them or, if one is refused, none."""
        added: dict[str, Tool] = {}
        for tool in map(as_tool, tools):
            if not re.fullmatch(NAME, tool.name):
                raise ValueError(f"{tool.name!r} cannot be a tool's name: 1 to 64 letters, digits, _ or - are needed")
            if tool.name in self._tools or tool.name in added:
                raise ValueError(f"Two tools are named {tool.name!r}: rename one (name=…), or remove the other first")
            added[tool.name] = tool
        self._tools.update(added)
        return self

    def remove_tool(self, name: str) -> Tool:
        """Take a tool out and return it; KeyError if there is none of that name."""
        return self._tools.pop(name)

    def to_params(self) -> tuple[dict[str, JSON], ...]:
        """The tools as OpenAI functions, sorted by name; the same object as long as no tool, description or schema is replaced.

        A schema that is changed in place is not noticed: give the tool a new one.
        """
        if self._params is None or not self._unchanged():
            self._shown = [(tool, tool.description, tool.parameters) for tool in self._tools.values()]
            self._params = tuple(self._tools[name].to_param() for name in sorted(self._tools))
        return self._params

    def _unchanged(self) -> bool:
        return len(self._shown) == len(self._tools) and all(
            tool is shown and tool.description == description and tool.parameters is parameters
            for tool, (shown, description, parameters) in zip(self._tools.values(), self._shown, strict=True)
        )

    async def execute(
        self, name: str, tool_input: Mapping[str, JSON] | None = None, *, context: ToolContext | None = None
    ) -> ToolResult:
        """Validate the input and run the tool of that name.

        A result with an error comes back for an unknown name, input that does not fit, and a ToolError; anything else that
        the tool raises is raised.
        """
        tool = self.get_tool(name)
        if tool is None:
            return ToolResult(error=f"Tool {name} is invalid")
        arguments = dict(tool_input or {})
        try:
            check(tool, arguments)
            return await call(tool, arguments, context)
        except ToolError as error:
            return ToolResult(error=error.message)

    def copy(self) -> ToolCollection:
        """An independent collection with fresh copies of the tools; what two tools share they share in the copy, too.

        Raises TypeError for a tool that cannot be copied.
        """
        memo: dict[int, Any] = {}
        return ToolCollection(*(Tool.fresh(tool, memo) for tool in self._tools.values()))

    def fresh(self) -> ToolCollection:
        """What an agent gets of a collection that its class names: a copy."""
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> ToolCollection:
        return self.copy()


async def call(tool: Tool, arguments: Mapping[str, JSON], context: ToolContext | None) -> ToolResult:
    """Run a tool with checked arguments; whatever it raises is raised."""
    return normalise(await tool.invoke(arguments, context))


def as_collection(tools: ToolCollection | Iterable[Any]) -> ToolCollection:
    """A collection as it is; of anything else iterable, a new one."""
    return tools if isinstance(tools, ToolCollection) else ToolCollection(*tools)
