"""One tool of an MCP server as one of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from handwork.errors import MCPServerError
from handwork.mcp.actions import actions_of
from handwork.mcp.connection import Connection
from handwork.mcp.names import tool_names
from handwork.mcp.offer import ToolOffer
from handwork.mcp.parameters import for_models
from handwork.mcp.results import failure, keeper, result_of
from handwork.schema import JSON, Action, ToolResult
from handwork.tool.base import Tool, ToolContext


class MCPClientTool(Tool):
    """A tool of a server, called through its connection.

    The model is shown a form of its schema that every provider takes (`to_param`); arguments are judged by the server's own
    schema (`parameters`), of which nothing is ever fetched. A copy for another agent shares the connection, as it belongs to
    the session.

    Args:
        offer: the definition that may be shown and called.
        connection: the server's.
        name: what the model calls it; without one, what it is called when no other server is there.
    """

    server: str = ""
    original_name: str = ""

    def __init__(self, offer: ToolOffer, connection: Connection, *, name: str | None = None) -> None:
        super().__init__(
            name=name or tool_names(connection.name, [offer.name])[offer.name],
            description=offer.description or offer.title,
            parameters=offer.parameters,
            sandboxed=connection.settings.type == "stdio" and connection.settings.sandbox,
            server=connection.name,
            original_name=offer.name,
        )
        self._offer, self._connection = offer, connection
        self._shown = for_models(offer.parameters)

    @property
    def offer(self) -> ToolOffer:
        """The definition that this tool was made of."""
        return self._offer

    @property
    def connection(self) -> Connection:
        return self._connection

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(self._offer, self._connection, name=self.name)

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        return actions_of(self.server, self._offer.annotations)

    def to_param(self) -> dict[str, JSON]:
        function = {"name": self.name, "description": self.description, "parameters": self._shown}
        return {"type": "function", "function": function}

    async def invoke(self, arguments: Mapping[str, JSON], context: ToolContext | None) -> ToolResult:
        """Arguments may have any names, `context` and `self` among them: they are never given as names of Python."""
        progress = context.progress if context else None
        try:
            answer = await self._connection.call(self.original_name, arguments, progress=progress)
        except MCPServerError as error:
            return failure(error)
        return await result_of(answer, self.name, keeper(context))

    async def execute(self, /, **arguments: JSON) -> ToolResult:
        """The same without a session: nothing shows its progress or keeps its files."""
        return await self.invoke(arguments, None)
