"""What a server offers, read page by page and made fit to be shown: cleaned, bounded, without what cannot be used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from handwork.mcp.cleaning import (
    LONGEST_TEXT,
    Unfit,
    clean,
    clean_schema,
    is_plain_name,
    one_line,
)
from handwork.mcp.mending import LEFT_OUT, RETURNS, TASK_ONLY
from handwork.mcp.offer import Offer, PromptArgument, PromptOffer, ResourceOffer, ToolOffer
from handwork.mcp.schema_flaw import flaw
from handwork.schema import JSON
from handwork.tool.wording import counted

MOST_PAGES = 100
MOST_ENTRIES = 2_000
"""Of tools, of prompts and of resources."""
_METHOD_NOT_FOUND = -32601
_TOLD = 3
_AT_ONCE = 20
Tell = Callable[[str], None]


async def read_offer(client: Any, tell: Tell | None = None) -> Offer:
    """What the server of a connected client (`mcp.Client`) offers.

    A tool that cannot be used (its name or its schema) is left out; of two of one name the first one stays. The same offer comes of
    the same server, in whatever order it lists things. Entries that the library itself would refuse the whole list for must have
    been taken out by `mending.mended` before.

    Args:
        client: asked for all lists anew.
        tell: told in one sentence, if anything was left out.
    """
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    left = _LeftOut()
    info, capabilities = client.server_info, client.server_capabilities
    tasks = client.protocol_version not in MODERN_PROTOCOL_VERSIONS  # from 2026 on it is the server that sees to that
    tools = await _tools(await _pages(client.list_tools, "tools", left), left, tasks=tasks)
    listed = await _pages(client.list_prompts, "prompts", left) if capabilities.prompts is not None else []
    prompts = _prompts(listed, left)
    if tell and left:
        tell(left.told())
    return Offer(
        server=one_line(getattr(info, "name", "")),
        version=one_line(getattr(info, "version", "")),
        protocol=one_line(client.protocol_version),
        instructions=clean(client.instructions),
        tools=tools,
        prompts=prompts,
        resources=capabilities.resources is not None,
    )


async def read_resources(client: Any, tell: Tell | None = None) -> tuple[ResourceOffer, ...]:
    """The resources of a connected client's server and then their templates, each by address."""
    left = _LeftOut()
    found = [_resource(each, str(each.uri)) for each in await _pages(client.list_resources, "resources", left)]
    listed = await _pages(client.list_resource_templates, "resource_templates", left)
    patterns = [_resource(each, each.uri_template, template=True) for each in listed]
    if tell and left:
        tell(left.told())
    return (*sorted(found, key=lambda each: each.uri), *sorted(patterns, key=lambda each: each.uri))


@dataclass(slots=True)
class _LeftOut:
    """What was left out, with its reason, and which lists were cut."""

    sentences: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.sentences or self.cut)

    def told(self) -> str:
        parts = []
        if self.sentences:
            more = len(self.sentences) - _TOLD
            rest = f"; and {more} more" if more > 0 else ""
            what = counted(len(self.sentences), "entry", "entries")
            parts.append(f"{what} left out: {'; '.join(self.sentences[:_TOLD])}{rest}.")
        if self.cut:
            parts.append(f"Its list of {' and '.join(self.cut)} does not end: only the beginning is used.")
        return " ".join(parts)


async def _pages(ask: Callable[..., Awaitable[Any]], key: str, left: _LeftOut) -> list[Any]:
    """All entries of a list; none where the server does not know the request."""
    found: list[Any] = []
    cursor, seen = None, set[str]()
    for _ in range(MOST_PAGES):
        page = await _page(ask, cursor)
        if page is None:
            return found
        found += getattr(page, key)
        told = (page.meta or {}).get(LEFT_OUT)
        left.sentences += [one_line(each) for each in told] if isinstance(told, list) else []
        cursor = page.next_cursor
        if cursor is None and len(found) <= MOST_ENTRIES:
            return found
        if cursor is None or cursor in seen or len(found) > MOST_ENTRIES:
            break
        seen.add(cursor)
    left.cut.append(key.replace("_", " "))
    return found[:MOST_ENTRIES]


async def _page(ask: Callable[..., Awaitable[Any]], cursor: str | None) -> Any:
    from mcp.shared.exceptions import MCPError

    try:
        return await ask(cursor=cursor, cache_mode="bypass")
    except MCPError as error:
        if error.code != _METHOD_NOT_FOUND:
            raise
        return None


async def _tools(listed: list[Any], left: _LeftOut, *, tasks: bool) -> tuple[ToolOffer, ...]:
    made: dict[str, ToolOffer] = {}
    for number, each in enumerate(listed):
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)  # two thousand of them take a second, and others work meanwhile
        name = each.name if is_plain_name(each.name) else ""
        try:
            if not name:
                raise Unfit("its name is too long, or cannot be seen")
            if name in made:
                raise Unfit("there are two of that name; the first is used")
            if tasks and (each.meta or {}).get(TASK_ONLY):
                raise Unfit("it can only be called as a task, in a way that Handwork does not know")
            made[name] = _tool(name, each)
        except Unfit as error:
            left.sentences.append(f"{one_line(each.name, 60) or 'one without a name'}: {error}")
    return tuple(made[name] for name in sorted(made))


def _tool(name: str, listed: Any) -> ToolOffer:
    parameters = _usable(listed.input_schema)
    returns: dict[str, JSON] | None = None
    if (schema := (listed.meta or {}).get(RETURNS, listed.output_schema)) is not None:
        try:
            returns = _usable(schema)
        except Unfit:
            returns = None  # nobody's arguments are judged by it
    hints: dict[str, JSON] = {}
    if listed.annotations is not None:
        hints = listed.annotations.model_dump(mode="json", by_alias=True, exclude_none=True)
        if title := one_line(hints.pop("title", "")):
            hints["title"] = title
    return ToolOffer(
        name=name,
        description=clean(listed.description, LONGEST_TEXT),
        parameters=parameters,
        title=one_line(listed.title),
        annotations=hints,
        returns=returns,
    )


def _usable(schema: JSON) -> dict[str, JSON]:
    cleaned = clean_schema(schema)
    if why := flaw(cleaned):
        raise Unfit(why)
    return cleaned


def _prompts(listed: list[Any], left: _LeftOut) -> tuple[PromptOffer, ...]:
    made: dict[str, PromptOffer] = {}
    for each in listed:
        if not is_plain_name(each.name) or each.name in made:
            why = "there are two of that name; the first is used" if each.name in made else "its name cannot be seen"
            left.sentences.append(f"{one_line(each.name, 60) or 'one without a name'}: {why}")
            continue
        made[each.name] = PromptOffer(
            name=each.name,
            description=clean(each.description),
            title=one_line(each.title),
            arguments=tuple(
                PromptArgument(name=one.name, description=clean(one.description), required=bool(one.required))
                for one in each.arguments or ()
                if is_plain_name(one.name)
            ),
        )
    return tuple(made[name] for name in sorted(made))


def _resource(listed: Any, uri: str, *, template: bool = False) -> ResourceOffer:
    return ResourceOffer(
        uri=one_line(uri, LONGEST_TEXT),
        name=one_line(listed.name),
        description=clean(listed.description),
        media_type=one_line(listed.mime_type),
        template=template,
    )
