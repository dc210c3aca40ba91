"""What the SDK reads of a server's answers, in our own words (content.py)."""

from __future__ import annotations

from typing import Any, Literal

from handwork.mcp.content import Answer, Embedded, Link, Media, Part, PromptMessage, Text, Unknown


def answer_of(result: Any) -> Answer:
    """The answer of a tool (`CallToolResult`)."""
    return Answer(
        parts=tuple(part_of(each) for each in result.content),
        structured=result.structured_content,
        failed=bool(result.is_error),
        meta=result.meta,
    )


def contents_of(result: Any) -> tuple[Embedded, ...]:
    """The contents of a resource (`ReadResourceResult`); one address may stand for several."""
    return tuple(_embedded(each) for each in result.contents)


def messages_of(result: Any) -> tuple[PromptMessage, ...]:
    """The messages of a prompt (`GetPromptResult`)."""
    return tuple(PromptMessage(_role(each.role), part_of(each.content)) for each in result.messages)


def part_of(part: Any) -> Part:
    """One part of any of them."""
    match part.type:
        case "text":
            return Text(part.text)
        case "image" | "audio":
            return Media(part.type, part.data, part.mime_type)
        case "resource_link":
            return Link(str(part.uri), part.name, part.description or "", part.mime_type or "")
        case "resource":
            return _embedded(part.resource)
    return Unknown(str(part.type))


def _embedded(content: Any) -> Embedded:
    return Embedded(
        str(content.uri), getattr(content, "text", None), getattr(content, "blob", None), content.mime_type or ""
    )


def _role(role: str) -> Literal["user", "assistant"]:
    return "assistant" if role == "assistant" else "user"
