"""Our words as MCP's: what tools are, what came of a call, the files that it left."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handwork.config import Settings
from handwork.schema import JSON, Artifact
from handwork.server.answer import Answer
from handwork.server.exchange import Form
from handwork.server.hints import hints
from handwork.tool.base import Tool

_DETAILS = "handwork/details"
_HANDLE: Mapping[str, JSON] = {
    "type": "string",
    "description": "The session that an earlier answer named: its shell, variables and plan go on. Without it a new one begins.",
}
_LARGEST = 4000
"""Characters of JSON that a call's details may have: more of them is for the journal, not for the wire."""


def tool_of(tool: Tool, settings: Settings, *, handles: bool) -> Any:
    """A tool as it is listed; with `handles` it takes the session to work in as an argument."""
    import mcp_types as types

    told, schema = hints(tool, settings), dict(tool.parameters)
    if handles and "session" not in (properties := _properties(schema)):
        schema["properties"] = {**properties, "session": dict(_HANDLE)}
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=schema,
        annotations=types.ToolAnnotations(
            read_only_hint=told.read_only,
            destructive_hint=told.destructive,
            idempotent_hint=told.idempotent,
            open_world_hint=told.open_world,
        ),
    )


def _properties(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    properties = schema.get("properties")
    return dict(properties) if isinstance(properties, dict) else {}


def result_of(answer: Answer, *, handle: str | None = None) -> Any:
    """What a client gets of an answer; `handle` is how it comes back to the session."""
    import mcp_types as types

    content: list[Any] = [types.TextContent(type="text", text=answer.text)]
    content += [
        types.ImageContent(type="image", data=image.data, mime_type=image.media_type)
        for image in answer.images
        if image.data
    ]
    content += [_link(artifact) for artifact in answer.artifacts]
    if handle is not None:
        content.append(types.TextContent(type="text", text=f"(session: {handle})"))
    meta = {_DETAILS: dict(answer.details)} if answer.details and _is_small(answer.details) else None
    structured = dict(answer.structured) if answer.structured is not None else None
    return types.CallToolResult(content=content, structured_content=structured, is_error=answer.is_error, _meta=meta)


def _is_small(details: Mapping[str, JSON]) -> bool:
    return len(repr(details)) <= _LARGEST


def _link(artifact: Artifact) -> Any:
    import mcp_types as types

    path = Path(artifact.path)
    return types.ResourceLink(
        type="resource_link", name=path.name, title=artifact.title, uri=path.as_uri(), mime_type=artifact.media_type
    )


def resource_of(path: str, media_type: str) -> Any:
    """A file as it is listed."""
    import mcp_types as types

    return types.Resource(name=Path(path).name, uri=Path(path).as_uri(), mime_type=media_type)


def contents_of(path: str, media_type: str, data: bytes) -> Any:
    """A file as it is read."""
    import mcp_types as types

    uri = Path(path).as_uri()
    if media_type.startswith("text/"):
        text = data.decode(errors="replace")
        found: Any = types.TextResourceContents(uri=uri, mime_type=media_type, text=text)
    else:
        found = types.BlobResourceContents(uri=uri, mime_type=media_type, blob=base64.b64encode(data).decode())
    return types.ReadResourceResult(contents=[found])


def request_of(form: Form) -> Any:
    """A question as the client is asked it within the answer to its call."""
    import mcp_types as types

    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=form.message, requested_schema=dict(form.schema))
    )
