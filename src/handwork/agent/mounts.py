"""The tools of MCP servers among an agent's own: they come and go with their servers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from handwork.agent.approved_tool import ApprovedTool
from handwork.agent.mount_notices import BACK, SLOW, missing
from handwork.agent.server_words import instructions_of
from handwork.config import MCPServerSettings
from handwork.errors import ConfigError, HandworkError, MCPServerError, MCPUnavailable
from handwork.mcp.connection import Connection
from handwork.mcp.names import tool_names
from handwork.mcp.offer import Offer, ToolOffer
from handwork.mcp.resources import MCPResources
from handwork.session import Session
from handwork.session.servers import Servers
from handwork.tool.base import Tool
from handwork.tool.collection import ToolCollection
from handwork.tool.function import NAME
from handwork.tool.terminate import Terminate

PATIENCE = 30.0
"""Seconds that the first step waits for servers that connect, all together."""
_REFRESH = 10.0
"""Seconds that a step waits for lists that changed."""
_NOT_THERE = ("gone", "closed")


@dataclass(slots=True)
class Mount:
    """One server of an agent. `offer` is what is mounted of it."""

    name: str
    connection: Connection
    offer: Offer | None = None
    tools: dict[str, ApprovedTool] = field(default_factory=dict)
    """By the server's own names."""
    waited: bool = False
    """Nobody needs to wait for it any more."""
    missed: bool = False
    """A person was told that it is not there."""
    returned: bool = False
    """A person was told that it came nevertheless."""

    @property
    def shown(self) -> list[str]:
        """What its tools are called for the model."""
        return [tool.name for tool in self.tools.values()]


class Mounts:
    """The servers of one agent in one session. `plain` keeps the tools' own names, `quiet` leaves it to the agent to say what became of a
    server: for an agent of one."""

    def __init__(self, *, plain: bool = False, quiet: bool = False) -> None:
        self._plain, self._quiet = plain, quiet
        self._session: Session | None = None
        self._mounts: dict[str, Mount] = {}
        self._ours: dict[str, Tool] = {}
        self._resources = MCPResources(self._with_resources)
        self._mounted: tuple[ToolCollection, Sequence[Offer | None]] | None = None

    def __getitem__(self, name: str) -> Mount:
        return self._mounts[name]

    def __contains__(self, name: str) -> bool:
        return name in self._mounts

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._mounts)

    @property
    def connected(self) -> dict[str, str]:
        """The servers whose tools are there, each with its address or command."""
        there = {
            mount.name: mount.connection.settings.written for mount in self._mounts.values() if mount.offer is not None
        }
        return {name: written.url or written.command for name, written in there.items()}

    @property
    def instructions(self) -> str:
        """What the servers whose tools are there say of themselves, for the system prompt."""
        return instructions_of((mount.name, mount.offer.instructions) for mount in self.in_order if mount.offer)

    # ---- which servers

    def use(self, session: Session, servers: Mapping[str, MCPServerSettings]) -> None:
        """Have these servers and no others; those of another session have ended with it."""
        if session is not self._session:
            self._session, self._mounts = session, {}
        for name in self._mounts.keys() - servers.keys():
            del self._mounts[name]
        if servers:
            session.servers.declare(servers)
        for name, settings in servers.items():
            old = self._mounts.get(name)
            if old is None or old.connection.settings != settings or old.connection.state in _NOT_THERE:
                new = self._mounts[name] = Mount(name, session.servers.connection(name, settings))
                if (
                    old is not None and old.connection.settings == settings
                ):  # it failed: tried once more, behind the work
                    new.waited, new.missed, new.returned = True, old.missed, old.returned

    def start(self, *, at_once: bool = False) -> None:
        """Begin to connect those that are not known yet; a server with a record starts at its first use, or `at_once`, too: then all
        are waited for. An agent of one server waits for it each time."""
        for mount in self._mounts.values():
            try:
                self._start(mount, at_once or self._plain)
            except ConfigError as error:  # its record cannot be used, and without it nobody knows what was approved
                mount.waited = True
                self._miss(mount, error)

    def _start(self, mount: Mount, at_once: bool) -> None:
        records, settings = self._servers.definitions.records, mount.connection.settings
        recorded = records.find(mount.name, settings) is not None
        mount.waited = not at_once and (mount.waited or recorded)
        if at_once or not recorded or records.is_old(mount.name, settings):
            mount.connection.start()

    async def connect(self, name: str) -> None:
        """Connect a server and wait for it, as long as its own limit says. Raises MCPServerError, in place of a notice."""
        mount = self._mounts[name]
        mount.waited = True
        mount.connection.start()
        try:
            await mount.connection.ready()
        except MCPServerError:
            mount.missed = True
            raise

    async def remove(self, name: str) -> None:
        """End a server's connection; its tools go with the next `renew`."""
        await self._servers.drop(self._mounts.pop(name).connection)

    @property
    def _servers(self) -> Servers:
        assert self._session is not None
        return self._session.servers

    @property
    def in_order(self) -> tuple[Mount, ...]:
        """By name: nothing depends on who connected first."""
        return tuple(self._mounts[name] for name in sorted(self._mounts))

    # ---- waiting

    async def settle(self) -> None:
        """Wait until those that connect for the first time are there or have failed, a while at most."""
        waiting = [mount for mount in self.in_order if not mount.waited]
        if not waiting or self._session is None:
            return
        seconds = min(PATIENCE, max(mount.connection.settings.timeout for mount in waiting))
        tasks = [asyncio.create_task(mount.connection.ready()) for mount in waiting]
        try:
            async with self._session.clock.limit(seconds):
                await asyncio.wait(tasks)
        except TimeoutError:
            pass
        finally:
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for mount, end in zip(waiting, ends, strict=True):
            mount.waited = True
            if isinstance(end, MCPUnavailable):
                self._miss(mount, end)
            elif isinstance(end, asyncio.CancelledError):
                self._miss(mount, SLOW.format(name=mount.name, seconds=seconds))

    def _miss(self, mount: Mount, why: HandworkError | str) -> None:
        """Say that a server is not there, once."""
        if not mount.missed:
            mount.missed = True
            if isinstance(why, HandworkError):
                configured = self._servers.definitions.records.is_configured(mount.name, mount.connection.settings)
                why = missing(mount.name, why, configured=configured)
            self._notify("warning", why)

    def _notify(self, level: str, text: str) -> None:
        if self._session is not None and not self._quiet:
            self._session.notify(level, text)

    # ---- mounting

    async def renew(self, tools: ToolCollection) -> bool:
        """Mount what came, take out what went; whether the tools have changed.

        Asks servers that said so for their lists anew, and a person about definitions that changed.
        """
        stale = [each for each in self._mounts.values() if each.connection.stale and each.connection.state == "ready"]
        await asyncio.gather(*map(self._refresh, stale))
        for mount in self.in_order:
            await self._judge(mount)
        return self._mount(tools)

    def look_again(self) -> None:
        """Have the lists of all servers asked for by the next `renew`."""
        for mount in self._mounts.values():
            mount.connection.stale = True

    def unmount(self, tools: ToolCollection) -> None:
        """Take out all that is mounted: the session ends."""
        self._mounts = {}
        self._mount(tools)
        self._session = self._mounted = None

    async def _refresh(self, mount: Mount) -> None:
        """Ask for a server's lists anew; one that does not answer soon keeps those that it had, until it speaks of them again."""
        try:
            async with self._servers.clock.limit(_REFRESH):
                await mount.connection.refresh()
        except (MCPServerError, TimeoutError):
            mount.connection.stale = False

    async def _judge(self, mount: Mount) -> None:
        """Settle what of a server is to be mounted."""
        connection = mount.connection
        if connection.state in _NOT_THERE:
            mount.offer = None
            self._miss(mount, connection.error)
            return
        if connection.state == "lost":
            self._miss(mount, connection.error)
        try:
            records = self._servers.definitions.records
            if connection.offer is None and records.find(mount.name, connection.settings) is None:
                return
            mount.offer = await self._servers.approved(connection)
        except (ConfigError, MCPServerError) as error:
            mount.offer = None
            self._miss(mount, error)
            return
        if connection.state == "ready" and mount.missed and not mount.returned:
            mount.returned = True
            self._notify("info", BACK.format(name=mount.name))

    def _mount(self, tools: ToolCollection) -> bool:
        offers = [mount.offer for mount in self.in_order]
        if self._is_mounted(tools, offers):
            return False
        wanted = self._wanted({tool.name for tool in tools if self._ours.get(tool.name) is not tool})
        changed = False
        for name, tool in self._ours.items():
            if wanted.get(name) is not tool and tools.get_tool(name) is tool:
                tools.remove_tool(name)
                changed = True
        missing = [tool for tool in wanted.values() if tool not in tools]
        tools.add_tools(*missing)
        self._ours, self._mounted = wanted, (tools, offers)
        return changed or bool(missing)

    def _is_mounted(self, tools: ToolCollection, offers: Sequence[Offer | None]) -> bool:
        """Whether nothing has changed since they were mounted; to find that out costs a step next to nothing."""
        if self._mounted is None or self._mounted[0] is not tools or len(offers) != len(self._mounted[1]):
            return self._mounted is None and not self._mounts
        same = all(one is other for one, other in zip(offers, self._mounted[1], strict=True))
        return same and all(tools.get_tool(name) is tool for name, tool in self._ours.items())

    def _wanted(self, taken: Collection[str]) -> dict[str, Tool]:
        """All tools that should be there, by the names that they have for the model."""
        wanted: dict[str, Tool] = {}
        for mount in self.in_order:
            takes, offer = mount.connection.settings.takes, mount.offer
            offered = [tool for tool in offer.tools if takes(tool.name)] if offer is not None else []
            names = self._names(mount.name, [tool.name for tool in offered], {*taken, *wanted})
            mount.tools = {
                tool.name: self._tool(mount, tool, names[tool.name]) for tool in offered if tool.name in names
            }
            wanted |= {tool.name: tool for tool in mount.tools.values()}
        if self._with_resources() and not self._plain and self._resources.name not in taken:
            wanted[self._resources.name] = self._resources
        return wanted

    def _with_resources(self) -> dict[str, Connection]:
        """The servers that have resources: one tool reads those of all."""
        return {name: mount.connection for name, mount in self._mounts.items() if mount.offer and mount.offer.resources}

    def _tool(self, mount: Mount, offer: ToolOffer, name: str) -> ApprovedTool:
        """The tool that is there already, if it is the same, so that the list of tools stays what it is."""
        old = mount.tools.get(offer.name)
        if old is not None and old.name == name and old.offer == offer:
            return old
        return ApprovedTool(offer, mount.connection, self._servers.definitions, name=name)

    def _names(self, server: str, tools: Sequence[str], taken: Collection[str]) -> dict[str, str]:
        if not self._plain:
            return tool_names(server, tools, servers=self._mounts, taken=taken)
        own = {tool: tool for tool in tools if re.fullmatch(NAME, tool) and tool not in taken}
        rest = [tool for tool in tools if tool not in own]
        names = {**own, **tool_names(server, rest, taken={*taken, *own})}
        return {tool: name for tool, name in names.items() if tool.lower() != Terminate.name}
