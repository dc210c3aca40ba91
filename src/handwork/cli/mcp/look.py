"""Connects to one server as a session would, asks what it offers, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handwork.config import MCPServerSettings, Settings
from handwork.errors import HandworkError, MCPServerError
from handwork.events import Event, Notice
from handwork.mcp.approved import Approved, Record
from handwork.mcp.changes import LONGEST, Changes, changes, difference
from handwork.mcp.connection import Connection
from handwork.mcp.lacking import Lacking
from handwork.mcp.names import tool_names
from handwork.mcp.offer import Offer, ResourceOffer
from handwork.mcp.tool import MCPClientTool
from handwork.session import Session


@dataclass
class Looked:
    """What came of it: `offer` if it connected, else `error`.

    tools: those that a model would be shown. notices: what a run would have told. log: what the server logged.
    left_out: what of its lists cannot be used. banners: lines on its output that were no messages.
    record: what was approved of it before; differs: what is different now, and `diff` the same in lines.
    """

    name: str
    settings: MCPServerSettings
    offer: Offer | None = None
    error: HandworkError | None = None
    seconds: float = 0.0
    tools: list[MCPClientTool] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    banners: int = 0
    resources: tuple[ResourceOffer, ...] = ()
    record: Record | None = None
    differs: Changes = field(default_factory=Changes)
    diff: str = ""


def look(
    name: str,
    settings: MCPServerSettings,
    all_settings: Settings,
    workspace: Path,
    wait: Callable[[str], None] = lambda what: None,
) -> Looked:
    """Connect, in the sandbox of the workspace, and end it again; whatever the server does comes back in words.

    `wait` is told what is waited for, and '' when that is over."""
    looked = Looked(name, settings)
    began = time.monotonic()
    if settings.unset:
        looked.error = Lacking(name, settings.unset).failure()
        return looked
    with _store_of_its_own(all_settings) as own:
        try:
            asyncio.run(_waiting(_look(looked, own, workspace), f"connecting {name}", wait))
        except HandworkError as error:  # of the session itself: a workspace or sandbox that cannot be used
            looked.error = error
    looked.seconds = looked.seconds or time.monotonic() - began
    return looked


async def _waiting(work: Coroutine[Any, Any, None], what: str, wait: Callable[[str], None]) -> None:
    wait(what)
    try:
        await work
    finally:
        wait("")


async def _look(looked: Looked, settings: Settings, workspace: Path) -> None:
    def heard(event: Event) -> None:
        if isinstance(event, Notice):
            looked.notices.append((event.level, event.text))

    session = Session.open(settings, workspace, listeners=[heard])
    try:
        async with session:
            try:
                session.servers.declare({looked.name: looked.settings})
                await _ask(session.servers.connection(looked.name, looked.settings), looked, settings)
            finally:
                session.report()
    finally:
        with suppress(OSError):
            session.artifacts.rmdir()  # made for the sandbox, and empty


def compare(looked: Looked, approved: Approved) -> None:
    """Set what differs from what was approved. Raises ConfigError for a record that is damaged."""
    looked.record = approved.record(looked.name, looked.settings)
    if looked.record is None or looked.offer is None or not looked.record.is_about(looked.settings):
        return
    looked.differs = changes(looked.record.offer, looked.offer)
    looked.diff = difference_of(looked)


def difference_of(looked: Looked, longest: int = LONGEST) -> str:
    """What differs in lines; one that would be longer says only that."""
    if looked.record is None or looked.offer is None:
        return ""
    before, now, differs = looked.record.offer, looked.offer, looked.differs
    names = {*differs.changed, *differs.added, *differs.gone}
    return difference(
        [tool for tool in before.tools if tool.name in names],
        [tool for tool in now.tools if tool.name in names],
        instructions=(before.instructions, now.instructions),
        longest=longest,
    )


async def _ask(connection: Connection, looked: Looked, settings: Settings) -> None:
    began = time.monotonic()
    try:
        offer = looked.offer = await connection.ready()
        looked.seconds = time.monotonic() - began
        looked.tools = _tools(offer, connection, settings)
        if offer.resources:
            with suppress(MCPServerError):  # a server that says it has some and knows no such request
                looked.resources = await connection.resources()
    finally:
        await connection.close()
        looked.banners, looked.log, looked.left_out = connection.banners, list(connection.log), connection.left_out


def _tools(offer: Offer, connection: Connection, settings: Settings) -> list[MCPClientTool]:
    """Those that a model would be shown, as it would be."""
    names = tool_names(connection.name, [tool.name for tool in offer.tools], servers=settings.mcp.servers)
    wanted = [tool for tool in offer.tools if connection.settings.takes(tool.name)]
    return [MCPClientTool(tool, connection, name=names[tool.name]) for tool in wanted]


@contextmanager
def _store_of_its_own(settings: Settings) -> Iterator[Settings]:
    """The settings with a store that goes away: looking at a server is no session that anybody will look for."""
    folder = Path(tempfile.mkdtemp(prefix="handwork-mcp-"))
    try:
        store = settings.store.model_copy(update={"path": str(folder / "store.db")})
        yield settings.model_copy(update={"store": store})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
