"""Our server with the tools that the conformance suite asks for, written as any tool of ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from handwork.config import load_settings
from handwork.errors import ToolError
from handwork.schema import JSON, Action, ToolResult
from handwork.server.house import House, chosen
from handwork.server.over_http import Address, serve_http
from handwork.tool.base import Tool, ToolContext
from tests.server.watching import until
from tests.support.pictures import png_base64


class _SuiteTool(Tool):
    description = "What the suite asks for."

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        return ()


class SimpleText(_SuiteTool):
    name = "test_simple_text"

    async def execute(self) -> str:
        return "This is a simple text response for testing."


class ImageContent(_SuiteTool):
    name = "test_image_content"

    async def execute(self) -> ToolResult:
        return ToolResult(base64_image=png_base64())


class ErrorHandling(_SuiteTool):
    name = "test_error_handling"

    async def execute(self) -> str:
        raise ToolError("This tool intentionally returns an error for testing")


class WithProgress(_SuiteTool):
    name = "test_tool_with_progress"

    async def execute(self, context: ToolContext) -> str:
        for part in ("one", "two", "three"):
            await context.progress(f"{part}\n")
            await asyncio.sleep(0.3)  # the suite wants three notifications, and those of one moment are told as one
        return "done"


class Asking(_SuiteTool):
    name = "test_elicitation"
    parameters = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        return (Action(kind="ask", resource="human", repeatable=True),)

    async def execute(self, message: str, context: ToolContext) -> str:
        return f"User response: {await context.ask(message)}"


class WholeSchema(_SuiteTool):
    name = "json_schema_2020_12_tool"
    parameters = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "additionalProperties": False,
    }

    async def execute(self, name: str = "", address: Mapping[str, JSON] | None = None) -> str:
        return name


class SuiteHouse(House):
    """The tools of ours, and those."""

    @property
    def tools(self) -> list[Tool]:
        ours = [SimpleText(), ImageContent(), ErrorHandling(), WithProgress(), Asking(), WholeSchema()]
        return [*House.tools.__get__(self), *ours]


@asynccontextmanager
async def suite_server(folder: Path) -> AsyncIterator[tuple[str, str]]:
    """Its address and its token."""
    workspace = folder / "workspace"
    workspace.mkdir()
    said, stop, token = list[str](), asyncio.Event(), folder / "token"
    house = SuiteHouse(
        load_settings(workspace=workspace, trusted=False), workspace, chosen(["search_files"]), said.append
    )
    task = asyncio.create_task(serve_http(house, Address("127.0.0.1", 0, token), stop))
    try:
        await until(lambda: bool(said))
        url = next(word for word in said[0].split() if word.startswith("http://"))
        yield url.rstrip(",;."), token.read_text().strip()
    finally:
        stop.set()
        await task
