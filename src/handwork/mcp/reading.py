"""What a server offers, read page by page and made fit to be shown: cleaned, bounded, without what cannot be used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import TypeAdapter

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
LARGEST = 8 << 20
"""Bytes (as JSON) of all tools and prompts together, or of all resources: they are held, compared, shown and kept."""
_LONGEST_CURSOR = 1 << 16
_METHOD_NOT_FOUND = -32601
_TOLD = 3
_AT_ONCE = 20
Tell = Callable[[str], None]
E = TypeVar("E")


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
    tools = await _tools(client, left, tasks=tasks)
    prompts = await _prompts(client, left) if capabilities.prompts is not None else ()
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
    found, patterns = list[ResourceOffer](), list[ResourceOffer]()

    def take(listed: Any) -> None:
        found.append(left.fits(_resource(listed, str(listed.uri))))

    def take_template(listed: Any) -> None:
        patterns.append(left.fits(_resource(listed, listed.uri_template, template=True)))

    await _each(client.list_resources, "resources", left, take)
    await _each(client.list_resource_templates, "resource_templates", left, take_template)
    if tell and left:
        tell(left.told())
    return (*sorted(found, key=lambda each: each.uri), *sorted(patterns, key=lambda each: each.uri))


@dataclass(slots=True)
class _LeftOut:
    """What was left out: how much, the first of it with its reason, and which lists were cut. It knows how much room there still is."""

    sentences: list[str] = field(default_factory=list)
    number: int = 0
    cut: list[str] = field(default_factory=list)
    room: int = LARGEST

    def __bool__(self) -> bool:
        return bool(self.number or self.cut)

    def add(self, sentence: str) -> None:
        self.number += 1
        if len(self.sentences) < _TOLD:
            self.sentences.append(sentence)

    def fits(self, entry: E) -> E:
        """The entry, if there is room for it beside those before. Raises Unfit."""
        size = len(TypeAdapter(type(entry)).dump_json(entry))
        if size > self.room:
            raise Unfit(f"all that the server describes is larger than {LARGEST >> 20} MB")
        self.room -= size
        return entry

    def told(self) -> str:
        parts = []
        if self.number:
            more = self.number - len(self.sentences)
            rest = f"; and {more} more" if more > 0 else ""
            what = counted(self.number, "entry", "entries")
            parts.append(f"{what} left out: {'; '.join(self.sentences)}{rest}.")
        if self.cut:
            parts.append(f"Its list of {' and '.join(self.cut)} does not end: only the beginning is used.")
        return " ".join(parts)


async def _each(ask: Callable[..., Awaitable[Any]], key: str, left: _LeftOut, take: Callable[[Any], None]) -> None:
    """Have all entries of a list taken, page by page: what was read is not held while the next one comes. None where the server does
    not know the request. What `take` calls Unfit is left out."""
    number, cursor, seen = 0, None, set[str]()
    for _ in range(MOST_PAGES):
        page = await _page(ask, cursor)
        if page is None:
            return
        told = (page.meta or {}).get(LEFT_OUT)
        for sentence in told if isinstance(told, list) else []:
            left.add(one_line(sentence))
        entries, cursor = getattr(page, key), page.next_cursor
        for entry in entries[: MOST_ENTRIES - number]:
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)  # two thousand tools take a second, and others work meanwhile
            number += 1
            try:
                take(entry)
            except Unfit as error:
                left.add(f"{one_line(entry.name, 60) or 'one without a name'}: {error}")
        if cursor is None and len(entries) <= number:
            return
        if cursor is None or number >= MOST_ENTRIES or cursor in seen or len(cursor) > _LONGEST_CURSOR:
            break
        seen.add(cursor)
    left.cut.append(key.replace("_", " "))


async def _page(ask: Callable[..., Awaitable[Any]], cursor: str | None) -> Any:
    from mcp.shared.exceptions import MCPError

    try:
        return await ask(cursor=cursor, cache_mode="bypass")
    except MCPError as error:
        if error.code != _METHOD_NOT_FOUND:
            raise
        return None


async def _tools(client: Any, left: _LeftOut, *, tasks: bool) -> tuple[ToolOffer, ...]:
    made: dict[str, ToolOffer] = {}

    def take(listed: Any) -> None:
        name = listed.name
        if not is_plain_name(name):
            raise Unfit("its name is too long, or cannot be seen")
        if name in made:
            raise Unfit("there are two of that name; the first is used")
        if tasks and (listed.meta or {}).get(TASK_ONLY):
            raise Unfit("it can only be called as a task, in a way that Handwork does not know")
        made[name] = left.fits(_tool(name, listed))

    await _each(client.list_tools, "tools", left, take)
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


async def _prompts(client: Any, left: _LeftOut) -> tuple[PromptOffer, ...]:
    made: dict[str, PromptOffer] = {}

    def take(listed: Any) -> None:
        name = listed.name
        if not is_plain_name(name):
            raise Unfit("its name cannot be seen")
        if name in made:
            raise Unfit("there are two of that name; the first is used")
        made[name] = left.fits(_prompt(name, listed))

    await _each(client.list_prompts, "prompts", left, take)
    return tuple(made[name] for name in sorted(made))


def _prompt(name: str, listed: Any) -> PromptOffer:
    return PromptOffer(
        name=name,
        description=clean(listed.description),
        title=one_line(listed.title),
        arguments=tuple(
            PromptArgument(name=one.name, description=clean(one.description), required=bool(one.required))
            for one in listed.arguments or ()
            if is_plain_name(one.name)
        ),
    )


def _resource(listed: Any, uri: str, *, template: bool = False) -> ResourceOffer:
    return ResourceOffer(
        uri=one_line(uri, LONGEST_TEXT),
        name=one_line(listed.name),
        description=clean(listed.description),
        media_type=one_line(listed.mime_type),
        template=template,
    )
