"""A server's tool that is called only as long as the server describes it as it was approved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from handwork.errors import MCPRefused, MCPServerError
from handwork.mcp.connection import Connection
from handwork.mcp.offer import ToolOffer
from handwork.mcp.results import failure
from handwork.mcp.tool import MCPClientTool
from handwork.schema import JSON, ToolResult
from handwork.session.definitions import Definitions
from handwork.tool.base import ToolContext

_CHANGED = (
    "the MCP server {server} does not describe {tool} any more as it was approved, so it was not called; what it offers now is "
    "looked at before the next step"
)


class ApprovedTool(MCPClientTool):
    """Known from a record, its server starts with the first call, and may say at any time that its tools changed: what it describes
    now is compared before it is called."""

    def __init__(self, offer: ToolOffer, connection: Connection, definitions: Definitions, *, name: str) -> None:
        super().__init__(offer, connection, name=name)
        self._definitions = definitions

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(self.offer, self.connection, self._definitions, name=self.name)

    async def invoke(self, arguments: Mapping[str, JSON], context: ToolContext | None) -> ToolResult:
        try:
            await self.connection.current()
        except MCPServerError as error:
            return failure(error)
        if not self._definitions.holds(self.connection, self.offer):
            said = _CHANGED.format(server=self.server, tool=self.original_name)
            return failure(MCPRefused(said))
        return await super().invoke(arguments, context)
