"""The connection to one MCP server: one supervised task owns the client, everybody else asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, TypeAlias

from handwork.config import MCPServerSettings
from handwork.mcp.content import Answer, Embedded, PromptMessage
from handwork.mcp.offer import Offer, ResourceOffer
from handwork.mcp.surroundings import Surroundings
from handwork.schema import JSON

State: TypeAlias = Literal["idle", "connecting", "ready", "lost", "gone", "closed"]
"""idle: nobody needed it yet. lost: it will be tried again. gone: it will not, `failure` says why."""
Progress: TypeAlias = Callable[[str], Awaitable[None]]


class Connection:
    """One server's client.

    Made without doing anything; `start` begins to connect in the background, and so does the first use. What is asked while it
    connects waits, at most `settings.timeout` seconds by the session's clock. A connection that is lost is tried again with
    growing pauses; a call that was under way then is never repeated.

    Every request raises MCPUnavailable (no connection, or lost on the way), MCPLoginNeeded, MCPRefused (the server's own error), and
    a cancelled one is cancelled at the server, too.
    """

    def __init__(
        self,
        name: str,
        settings: MCPServerSettings,
        surroundings: Surroundings,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name, self.settings = name, settings
        self.state: State = "idle"
        self.failure = ""
        """Why there is no connection, in words for a person; '' while there is one."""
        self.offer: Offer | None = None
        """What it offered when it was last asked; None before."""
        self.stale = False
        """It said that its lists changed since."""
        self.banners = 0
        """Lines on its standard output that were no messages."""
        self._surroundings, self._sleep = surroundings, sleep

    def start(self) -> None:
        """Begin to connect, if nobody has; needs a running loop."""
        raise NotImplementedError

    async def ready(self) -> Offer:
        """Wait until it is connected and its lists are read."""
        raise NotImplementedError

    async def refresh(self) -> Offer:
        """Ask for its lists anew."""
        raise NotImplementedError

    async def call(self, tool: str, arguments: Mapping[str, JSON], *, progress: Progress | None = None) -> Answer:
        """Call a tool; `progress` is told what it says meanwhile."""
        raise NotImplementedError

    async def resources(self) -> tuple[ResourceOffer, ...]:
        """Its resources and their templates."""
        raise NotImplementedError

    async def read(self, uri: str) -> tuple[Embedded, ...]:
        """The content of a resource."""
        raise NotImplementedError

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> tuple[PromptMessage, ...]:
        """A prompt with its arguments put in."""
        raise NotImplementedError

    async def close(self) -> None:
        """End it in order: no process, task or socket is left. From any task, as often as one likes."""
        raise NotImplementedError
