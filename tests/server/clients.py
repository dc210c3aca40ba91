"""The mcp package's own client against our server: in this process, over HTTP, or as a program."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import ElicitResult, Implementation

from handwork.server.desk import Desk
from handwork.server.house import House
from handwork.server.over_http import Address, serve_http
from handwork.server.protocol import build_server
from handwork.store.encode import decode
from handwork.store.sqlite import Store
from tests.server.watching import until

MODES = ("legacy", "2026-07-28")
"""Both eras of the protocol."""


class Human:
    """Answers the questions of a server in this order: a form's fields, or how it was refused. `asked` are the messages."""

    def __init__(self, *answers: dict[str, Any] | str) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        self.schemas: list[dict[str, Any]] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.asked.append(params.message)
        self.schemas.append(params.requested_schema)
        answer = self._answers.pop(0)
        if isinstance(answer, dict):
            return ElicitResult(action="accept", content=answer)
        return ElicitResult(action="cancel" if answer == "cancel" else "decline")


class Progress(list[str]):
    """Keeps what was told; an event is set at the first word."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()
        self.numbers: list[float] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.append(message or "")
        self.numbers.append(progress)
        self.began.set()


@asynccontextmanager
async def connected(house: House, mode: str = "legacy", human: Human | None = None) -> AsyncIterator[Client]:
    """A client of a server in this process."""
    desk = Desk(house)
    try:
        async with Client(build_server(desk), mode=mode, elicitation_callback=human) as client:
            yield client
    finally:
        await desk.close()


@asynccontextmanager
async def serving(house: House, folder: Path) -> AsyncIterator[tuple[str, str]]:
    """A server over HTTP in this process: its URL and its token."""
    said: list[str] = []
    stop, token = asyncio.Event(), folder / "token"
    house = House(house.settings, house.workspace, house.names, said.append)
    task = asyncio.create_task(serve_http(house, Address("127.0.0.1", 0, token), stop))
    try:
        ready = asyncio.ensure_future(until(lambda: bool(said)))
        await asyncio.wait({ready, task}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            ready.cancel()
            task.result()
        yield said[-1].split()[3], token.read_text().strip()
    finally:
        stop.set()
        await task


@asynccontextmanager
async def over_http(
    url: str, token: str, mode: str = "legacy", human: Human | None = None, *, name: str = "test"
) -> AsyncIterator[Client]:
    """A client that comes over HTTP."""
    async with create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http:
        transport = streamable_http_client(url, http_client=http)
        info = Implementation(name=name, version="1")
        async with Client(transport, mode=mode, elicitation_callback=human, client_info=info) as client:
            yield client


def text_of(result: Any) -> str:
    """The text of an answer."""
    return "\n".join(block.text for block in result.content if block.type == "text")


def events_of(house: House) -> list[Any]:
    """What the journal holds of all sessions, the newest session first."""
    store = Store.open(house.settings.store_path, synchronous=house.settings.store.synchronous)
    try:
        return [decode(info.id, *row) for info in store.sessions() for row in store.events(info.id)]
    finally:
        store.close()
