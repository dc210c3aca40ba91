"""What a server asks its user in the middle of a call (elicitation), put to the human field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from handwork.errors import Waiting
from handwork.mcp.cleaning import clean, is_too_deep, one_line
from handwork.mcp.fields import Field, Refusal, field_of
from handwork.mcp.page import page_of
from handwork.mcp.surroundings import AskHuman
from handwork.schema import JSON, scrub

Action: TypeAlias = Literal["accept", "decline", "cancel"]
Answered: TypeAlias = tuple[Action, Mapping[str, JSON] | None]
MOST_FIELDS = 30
TRIES = 3
_LONGEST = 4_000
_WAYS = "To refuse, answer decline; to stop here, answer cancel."


async def elicit(server: str, params: Any, ask: AskHuman) -> Answered:
    """What a person decided about a request (`mcp_types.ElicitRequestParams` of either era), and the form's content.

    Whatever the server says stands behind a `>`, cleaned, so that none of it can pass for ours. Nobody at the door, or three answers
    that do not fit, cancel. Nothing is ever opened.
    """
    try:
        if getattr(params, "mode", "form") == "url":
            return await _page(
                server, params.url, params.message, ask, "open the page in your browser and answer yes"
            ), None
        return await _form(server, params, ask)
    except Waiting:
        return "cancel", None


async def page_first(server: str, address: str, message: Any, ask: AskHuman) -> Action:
    """What a person did about a page that a server waits for before it does anything. Raises Waiting."""
    return await _page(
        server, address, message, ask, "open the page in your browser, and answer yes when you are done there"
    )


async def _page(server: str, address: str, message: Any, ask: AskHuman, how: str) -> Action:
    page = page_of(address)
    if page is None:
        return "decline"
    question = (
        f"The MCP server {one_line(server)} wants you to open a page:\n{_quoted(message)}\n\n{page.described()}\n"
        f"Handwork does not open it. If you know this host, {how}. "
    )
    return await _agreed(question + _WAYS, ask)


async def _form(server: str, params: Any, ask: AskHuman) -> Answered:
    schema = params.requested_schema
    properties = schema.get("properties") if isinstance(schema, dict) and not is_too_deep(schema) else None
    if (
        not isinstance(properties, dict)
        or len(properties) > MOST_FIELDS
        or any(scrub(each) != each for each in properties)
    ):
        return "decline", None
    opening = f"The MCP server {one_line(server)} asks:\n{_quoted(params.message)}\n\n"
    if not properties:
        action = await _agreed(f"{opening}Answer yes to agree. {_WAYS}", ask)
        return action, {} if action == "accept" else None
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    content: dict[str, JSON] = {}
    for number, (name, rule) in enumerate(properties.items(), 1):
        field = field_of(name, rule, required=name in needed)
        place = f"({number} of {len(properties)}) " if len(properties) > 1 else ""
        action, value = await _asked(f"{opening}{place}{field.described(params.message)}", field, ask)
        if action != "accept":
            return action, None
        if value is not None:
            content[name] = value
    return "accept", content


async def _asked(question: str, field: Field, ask: AskHuman) -> tuple[Action, JSON]:
    """The value of one field; None is left out."""
    problem = ""
    for _ in range(TRIES):
        text = (await ask(f"{problem}{question} {_WAYS}")).strip()
        if action := _word(text):
            return action, None
        try:
            return "accept", field.value(text)
        except Refusal as error:
            problem = f"That cannot be taken: {error}.\n\n"
    return "cancel", None


async def _agreed(question: str, ask: AskHuman) -> Action:
    """A plain yes; what is neither that nor a no is asked again."""
    for _ in range(TRIES):
        text = (await ask(question)).strip().lower()
        if text in ("yes", "y", "accept"):
            return "accept"
        if text in ("no", "n"):
            return "decline"
        if action := _word(text):
            return action
    return "cancel"


def _word(text: str) -> Action | None:
    match text.lower():
        case "decline":
            return "decline"
        case "cancel":
            return "cancel"
    return None


def _quoted(message: Any) -> str:
    return "\n".join(f"> {line}" for line in clean(message, _LONGEST).strip().split("\n"))
