"""MCP servers in a chat: which there are and how they are, and the prompts that can be typed as commands."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches

from handwork.agent.base import BaseAgent
from handwork.agent.mounts import Mount
from handwork.agent.with_servers import WithServers
from handwork.cli.clean import one_line
from handwork.cli.columns import width
from handwork.cli.lines import Screen
from handwork.errors import ConfigError, HandworkError
from handwork.mcp.offer import Offer, PromptOffer
from handwork.mcp.prompts import arguments_of, request_of, usage
from handwork.session import Session
from handwork.tool.wording import counted

_TYPED = re.compile(r"/([^\s/:]+):([^\s]+)(?:\s+(.*))?\Z", re.DOTALL)
_WIDEST = 24
_PATIENCE = 2.0
"""Seconds that servers may take to say how many resources they have."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A server's prompt with what was typed behind it."""

    mount: Mount
    prompt: PromptOffer
    text: str

    async def request(self) -> tuple[str, tuple[bytes, ...]]:
        """The request that the server makes of it: text and pictures. Raises HandworkError."""
        arguments = arguments_of(self.mount.name, self.prompt, self.text)
        text, pictures = request_of(await self.mount.connection.prompt(self.prompt.name, arguments))
        if not text.strip() and not pictures:
            raise ConfigError(f"The prompt {self.prompt.name} of {self.mount.name} came back empty")
        return text, pictures


class ChatServers:
    """The servers of a chat's agent."""

    def __init__(self, session: Session, agent: BaseAgent) -> None:
        self._session, self._agent = session, agent
        self._counted: dict[str, tuple[Offer | None, int]] = {}
        """How many resources the offer of a server stands for, as far as it was asked."""

    @property
    def mounts(self) -> tuple[Mount, ...]:
        return self._agent.served_by if isinstance(self._agent, WithServers) else ()

    def begin(self) -> None:
        """Begin to connect those that nothing is known of yet. Raises ConfigError."""
        if isinstance(self._agent, WithServers):
            self._agent.start_servers()

    async def connected(self) -> None:
        """Wait until none is connecting for the first time any more."""
        waiting = [mount.connection.ready() for mount in self.mounts if mount.connection.state == "connecting"]
        await asyncio.gather(*waiting, return_exceptions=True)

    @property
    def fact(self) -> str:
        """For the status line: `connecting 2 servers`; '' when all is quiet."""
        count = sum(mount.connection.state == "connecting" for mount in self.mounts)
        return f"connecting {counted(count, 'server')}" if count else ""

    # ---- prompts

    @property
    def prompts(self) -> Mapping[str, str]:
        """How each prompt is typed, with what it is for."""
        return {
            f"/{one_line(mount.name, 80)}:{one_line(prompt.name, 80)}": one_line(
                prompt.description or prompt.title, 200
            )
            for mount, prompt in self._prompts()
        }

    def asked(self, typed: str) -> Asked | None:
        """The prompt that was typed; None for anything else. Raises ConfigError for one that a server does not have."""
        found = _TYPED.match(typed.strip())
        mount = next((each for each in self.mounts if found and one_line(each.name, 80) == found[1]), None)
        if found is None or mount is None:
            return None
        there = {one_line(prompt.name, 80): prompt for each, prompt in self._prompts() if each is mount}
        if (prompt := there.get(found[2])) is not None:
            return Asked(mount, prompt, found[3] or "")
        near = get_close_matches(found[2], there, 1, 0.5)
        hint = usage(mount.name, there[near[0]]) if near else f"its prompts: {', '.join(there) or 'none'}"
        raise ConfigError(f"The server {mount.name} has no prompt {found[2][:60]!r}", hint=hint)

    def _prompts(self) -> Iterator[tuple[Mount, PromptOffer]]:
        for mount in self.mounts:
            offer = self._offer(mount)
            yield from ((mount, prompt) for prompt in (offer.prompts if offer else ()))

    def _offer(self, mount: Mount) -> Offer | None:
        """What is known of a server: as it said last, else as it was approved in an earlier session."""
        known = mount.offer or mount.connection.offer
        with suppress(HandworkError):  # of a record that is damaged, which is told elsewhere
            known = known or self._session.servers.definitions.records.find(mount.name, mount.connection.settings)
        return known

    # ---- shown

    async def show(self, screen: Screen) -> None:
        """Each server with its state; those that are connected are asked how many resources they have: some say so and have none."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await asyncio.gather(*map(self._count, self.mounts), return_exceptions=True)
        if not self.mounts:
            uses = isinstance(self._agent, WithServers)
            why = "No MCP server is configured: handwork mcp add" if uses else "This agent uses no MCP servers."
            screen.line(why, "dim")
            return
        names = min(max(width(one_line(mount.name, _WIDEST)) for mount in self.mounts), _WIDEST)
        for mount in self.mounts:
            name = one_line(mount.name, _WIDEST)
            words, style = self._state(mount)
            screen.line(f"  {name}{' ' * (names - width(name))}  {one_line(words, 500)}", style)
            for text in mount.connection.left_out:
                screen.line(f"  {' ' * names}  {one_line(text, 500)}", "dim")

    async def _count(self, mount: Mount) -> None:
        offer = mount.connection.offer
        known = self._counted.get(mount.name)
        if mount.connection.state == "ready" and offer and offer.resources and (not known or known[0] is not offer):
            self._counted[mount.name] = offer, len(await mount.connection.resources())

    def _state(self, mount: Mount) -> tuple[str, str]:
        offer, connection = self._offer(mount), mount.connection
        counted_of, number = self._counted.get(mount.name, (None, 0))
        has = (
            _has(offer, number if counted_of is not None and counted_of is connection.offer else None) if offer else ""
        )
        match connection.state:
            case "connecting":
                return "connecting …", "dim"
            case "ready":
                return f"connected · {has}", ""
            case "idle":
                return f"starts with its first call · {has}" if offer else "not started", "dim"
            case "lost":
                return f"lost, and tried again: {connection.failure}", "yellow"
        return f"not there: {connection.failure}", "yellow"


def _has(offer: Offer, resources: int | None) -> str:
    """What a server offers. `resources`: how many, None where nobody has counted them."""
    parts = [counted(len(offer.tools), "tool")]
    parts += [counted(len(offer.prompts), "prompt")] if offer.prompts else []
    if offer.resources and resources != 0:
        parts.append("resources" if resources is None else counted(resources, "resource"))
    return ", ".join(parts)
