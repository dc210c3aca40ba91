"""One tool reads the resources of all servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from handwork.config import MCPServerSettings
from handwork.errors import ToolError
from handwork.mcp.connection import Connection
from handwork.mcp.resources import MCPResources
from handwork.schema import Action, ToolResult
from handwork.tool.base import ToolContext
from tests.mcp.place import Place, opened
from tests.mcp.test_tool import connect


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path) as place:
        yield place


def of(**connections: Connection) -> MCPResources:
    return MCPResources(lambda: connections)


async def use(tool: MCPResources, place: Place, **arguments: Any) -> ToolResult:
    async def nothing(*args: Any, **fields: Any) -> Any:
        raise AssertionError

    context = ToolContext(
        call_id="c",
        sandbox=place.sandbox,
        ask=nothing,
        progress=nothing,
        save_artifact=nothing,
        resource=lambda *_: None,
    )
    return await tool.execute(context=context, **arguments)


async def test_without_an_address_all_resources_of_all_servers_are_listed(place: Place) -> None:
    broken = place.connect_to(MCPServerSettings(command="/no/such/program", timeout=5), name="broken")
    result = await use(of(docs=connect(place), broken=broken), place)
    assert (
        "a:\n- doc://guide [text/plain] guide: How to begin\n- doc://logo logo\n- template doc://page/{number} page"
        in result.output
    )
    assert "broken: The MCP server broken" in result.output


@pytest.mark.parametrize("uri", ["doc://guide", "doc://page/7"])
async def test_a_resource_is_read(place: Place, uri: str) -> None:
    result = await use(of(a=connect(place)), place, uri=uri)
    assert result == ToolResult(output=f"Resource {uri}:\ncontent of {uri}")


async def test_an_unknown_resource_is_an_error_that_names_the_nearest(place: Place) -> None:
    result = await use(of(a=connect(place)), place, server="a", uri="doc://gude")
    assert (result.error or "").startswith("Error executing tool: ")
    assert (result.system or "").startswith("The nearest that it lists: doc://guide")


async def test_an_unknown_server_is_an_error_that_names_those_that_are_there(place: Place) -> None:
    tool = of(docs=connect(place), files=connect(place))
    with pytest.raises(ToolError, match="no connected server 'doc' has resources; there are: docs"):
        await use(tool, place, server="doc")
    with pytest.raises(ToolError, match="there are: docs, files"):
        await use(tool, place, server="\x1bzzz")
    with pytest.raises(ToolError, match="server is needed beside uri, there are several: docs, files"):
        await use(tool, place, uri="doc://guide")
    with pytest.raises(ToolError, match="no connected MCP server has resources"):
        await use(MCPResources(dict), place)


async def test_a_server_that_is_gone_is_an_error_and_no_crash(place: Place) -> None:
    broken = place.connect_to(MCPServerSettings(command="/no/such/program", timeout=5), name="broken")
    result = await use(of(broken=broken), place, uri="x://y")
    assert result.error == "Not connected to MCP server"


def _actions(given: Mapping[str, Any], **connections: Connection) -> list[Action]:
    return [*of(**connections).actions(given)]


def test_reading_at_a_server_in_the_sandbox_only_reads_and_elsewhere_reaches_out(place: Place) -> None:
    inside, beside = connect(place), connect(place, sandbox=False)
    web = place.connect_to(MCPServerSettings(type="http", url="https://h.example/mcp"), name="web")
    reads = Action(kind="read", resource="mcp://a", repeatable=True)
    assert _actions({}, a=inside) == [reads]
    assert _actions({}, a=beside) == [Action(kind="network", resource="*", repeatable=True)]
    reaches = Action(kind="network", resource="https://h.example/mcp", repeatable=True)
    assert _actions({"server": "web"}, a=inside, web=web) == [reaches]
    assert _actions({}, a=inside, web=web) == [reads, reaches]
    assert _actions({"server": "none"}, a=inside, web=web) == [reads, reaches]
    assert _actions({})[0].kind == "read"


def test_what_the_model_reads_of_it_does_not_depend_on_the_servers(place: Place) -> None:
    assert of(a=connect(place)).to_param() == MCPResources(dict).to_param() == MCPResources(dict).fresh().to_param()


def test_a_key_in_a_servers_address_is_not_told_with_what_a_call_does(place: Place) -> None:
    settings = MCPServerSettings(type="http", url="https://me:secret@h.example/mcp?key=secret#secret")
    (action,) = _actions({}, web=place.connect_to(settings, name="web"))
    assert action.resource == "https://h.example/mcp"
