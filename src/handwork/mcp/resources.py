"""The tool that lists and reads the resources of all connected MCP servers."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from handwork.errors import MCPRefused, MCPServerError, ToolError
from handwork.mcp.actions import resource_of
from handwork.mcp.address import shown_url
from handwork.mcp.cleaning import one_line
from handwork.mcp.connection import Connection
from handwork.mcp.offer import ResourceOffer
from handwork.mcp.results import failure, keeper, text_of_resource
from handwork.schema import JSON, Action, ToolResult
from handwork.tool.base import Tool, ToolContext

Servers = Callable[[], Mapping[str, Connection]]
_COMPARED, _LONGEST = 2_000, 500
_NONE = "There are no resources."


class MCPResources(Tool):
    """List the resources of MCP servers or read one.

    Args:
        servers: what is connected now and has resources, by name; asked at each call.
    """

    name: str = "mcp_resources"
    description: str = (
        "Resources of the connected MCP servers. Without uri: lists the resources, and templates of addresses, of one server or of "
        "all. With uri (and server, where there are several): reads that resource; in a template's address put values for "
        "what stands in braces."
    )
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {
            "server": {"type": "string", "description": "A server's name; all of them when left out."},
            "uri": {"type": "string", "description": "The resource to read."},
        },
    }

    def __init__(self, servers: Servers, **fields: Any) -> None:
        super().__init__(**fields)
        self._servers = servers

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(self._servers)

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        """Reading at a server in the sandbox is a mere read; one elsewhere is reached over the network, or may reach it."""
        servers = self._servers()
        wanted = str(arguments.get("server") or "")
        asked = {wanted: servers[wanted]} if wanted in servers else servers
        return [_action(connection) for _, connection in sorted(asked.items())] or [_NOTHING]

    async def execute(self, *, context: ToolContext, server: str = "", uri: str = "") -> ToolResult:
        connections = self._asked(server)
        if uri:
            if len(connections) > 1:
                raise ToolError(
                    f"server is needed beside uri, there are several: {', '.join(map(one_line, connections))}"
                )
            (connection,) = connections.values()
            return await _read(connection, uri, context)
        listed = await asyncio.gather(*(_listed(each) for each in connections.values()))
        return ToolResult(output="\n\n".join(filter(None, listed)) or _NONE)

    def _asked(self, server: str) -> dict[str, Connection]:
        servers = dict(sorted(self._servers().items()))
        if not servers:
            raise ToolError("no connected MCP server has resources")
        if not server:
            return servers
        if server not in servers:
            near = difflib.get_close_matches(server[:_LONGEST], servers, 3) or [*servers]
            raise ToolError(f"no connected server {one_line(server, 60)!r} has resources; there are: {', '.join(near)}")
        return {server: servers[server]}


_NOTHING = Action(kind="read", resource="mcp://", repeatable=True)


def _action(connection: Connection) -> Action:
    settings = connection.settings
    if settings.type == "stdio" and settings.sandbox:
        return Action(kind="read", resource=resource_of(connection.name), repeatable=True)
    place = (
        shown_url(settings.url) if settings.type != "stdio" else "*"
    )  # a key may stand in an address, and actions are journaled
    return Action(kind="network", resource=place, repeatable=True)


async def _listed(connection: Connection) -> str:
    try:
        offers = await connection.resources()
    except MCPServerError as error:
        return f"{one_line(connection.name)}: {error.what}"
    return "\n".join((f"{one_line(connection.name)}:", *map(_line, offers))) if offers else ""


def _line(offer: ResourceOffer) -> str:
    kind = f" [{offer.media_type}]" if offer.media_type else ""
    name = f" {offer.name}" if offer.name and offer.name != offer.uri else ""
    description = f": {one_line(offer.description, _LONGEST)}" if offer.description else ""
    return f"- {'template ' if offer.template else ''}{offer.uri}{kind}{name}{description}"


async def _read(connection: Connection, uri: str, context: ToolContext) -> ToolResult:
    try:
        contents = await connection.read(uri)
    except MCPRefused as error:
        return failure(error).replace(system=await _near(connection, uri))
    except MCPServerError as error:
        return failure(error)
    return await text_of_resource(contents, f"{connection.name}-resource", keeper(context))


async def _near(connection: Connection, uri: str) -> str | None:
    """Which resources may have been meant."""
    try:
        known = [offer.uri for offer in await connection.resources()][:_COMPARED]
    except MCPServerError:
        return None
    near = difflib.get_close_matches(uri[:_LONGEST], known, 3) if len(known) <= _COMPARED else []
    return f"The nearest that it lists: {', '.join(near)}" if near and uri not in near else None
