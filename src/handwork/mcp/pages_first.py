"""A server that answers only after its user has opened a page: the page is put to the person, and the request is sent once more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from handwork.errors import MCPRefused, Waiting
from handwork.mcp.elicit import page_first
from handwork.mcp.page import page_of
from handwork.mcp.surroundings import AskHuman

R = TypeVar("R")
Put: TypeAlias = Callable[[str, Any], Awaitable[str]]
"""Put one page (its address, and what the server says of it) to the person: '' when it was opened, else why not."""

PAGES_FIRST = -32042
"""URL elicitation required: an error of the protocol of November 2025."""
CANCELLED = "that was cancelled"
_MOST_PAGES = 5


async def after_pages(server: str, send: Callable[[], Awaitable[R]], put: Put) -> R:
    """The answer to a request, sent once more after the pages that the server named were opened.

    Raises MCPRefused where one of them was not, and the server's own error where it names none, or wants them once more.
    """
    from mcp.shared.exceptions import MCPError

    try:
        return await send()
    except MCPError as error:
        pages = _pages(error.error.data) if error.code == PAGES_FIRST else []
        if not pages:
            raise
    for address, message in pages:
        if why := await put(address, message):
            page = page_of(address)
            where = f"a page of {page.host} is opened" if page else "a page is opened"
            raise MCPRefused(f"The MCP server {server} answers this only after {where}, and {why}", code=PAGES_FIRST)
    return await send()


async def opened(server: str, address: str, message: Any, ask: AskHuman | None) -> str:
    """See Put."""
    if ask is None:
        return "nobody is there to open it"
    if page_of(address) is None:
        return "its address is none that can be shown to a person, so it was declined"
    try:
        action = await page_first(server, address, message, ask)
    except Waiting:
        return "nobody is there to open it"
    return {"accept": "", "decline": "that was declined"}.get(action, CANCELLED)


def _pages(data: Any) -> list[tuple[str, Any]]:
    """The pages that such an error names; none where they are not described as the protocol says, or are too many to be looked at."""
    named = data.get("elicitations") if isinstance(data, dict) else None
    if not isinstance(named, list) or len(named) > _MOST_PAGES:
        return []
    pages = [(each.get("url"), each.get("message")) for each in named if isinstance(each, dict)]
    whole = len(pages) == len(named) and all(isinstance(url, str) for url, _ in pages)
    return [(str(url), message) for url, message in pages] if whole else []
