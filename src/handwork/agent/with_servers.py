"""An agent with the tools of MCP servers beside its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from handwork.agent.history import first_open
from handwork.agent.mounts import Mount, Mounts
from handwork.agent.run import Run
from handwork.agent.toolcall import ToolCallAgent
from handwork.agent.which_servers import chosen
from handwork.config import MCPServerSettings
from handwork.session import Session, uncancelled


class WithServers(ToolCallAgent):
    """An agent that uses MCP servers: their tools come and go with them, in the middle of a run, too.

    Connecting begins when the session opens, and the first step waits for it a while; one that fails costs a notice and not the run.
    A server whose tools are known from an earlier session starts with the first call.

    Field: `mcp_servers` says which: None is all that are configured; names of configured ones; or name → MCPServerSettings, or
    what stands in mcp.json for one. `{}` is none.
    """

    mcp_servers: Mapping[str, Any] | Iterable[str] | None = None

    def __init__(self, **fields: Any) -> None:
        self._mounts = self._new_mounts()
        self._served: Session | None = None
        self._without_servers = ""
        """What stands in the system prompt before the words of servers."""
        super().__init__(**fields)

    def _new_mounts(self) -> Mounts:
        return Mounts()

    @classmethod
    async def create(cls, **fields: Any) -> Self:
        """Make one with its session open and its servers connected, as far as they are there; `cleanup()` closes it."""
        agent = await cls(**fields).__aenter__()
        try:
            await agent.initialize_mcp_servers()
        except BaseException:
            await uncancelled(agent.cleanup())
            raise
        return agent

    async def initialize_mcp_servers(self) -> None:
        """Connect the servers now, and wait for them as the first step would; a run does it by itself."""
        self._use_servers(self._session_at_hand())
        self._mounts.start(at_once=True)
        await self._serve()

    def start_servers(self) -> None:
        """Begin to connect, behind whatever else goes on; the first step waits for it a while."""
        self._use_servers(self._session_at_hand())
        self._mounts.start()

    @property
    def served_by(self) -> tuple[Mount, ...]:
        """The servers that are used, by name, with their connections and what is mounted of them."""
        return self._mounts.in_order

    # ---- in a session

    def initialize_agent(self) -> None:
        super().initialize_agent()
        if self.session is not None:  # before anybody opens its sandbox, which servers may want to be opened further
            self._use_servers(self.session)

    def _session_at_hand(self) -> Session:
        return self.session or self._own_session or self._open_session()

    def _use_servers(self, session: Session) -> None:
        """Say which servers are used in a session; nothing starts by it."""
        self._mounts.use(session, self._chosen_servers(session))
        if session is not self._served:
            self._served = session
            session.on_close(self._leave_servers)

    def _chosen_servers(self, session: Session) -> dict[str, MCPServerSettings]:
        return chosen(self.mcp_servers, session.settings, str(session.workspace))

    async def _leave_servers(self) -> None:
        """The session ends, and with it the connections."""
        self._served = None
        self._mounts.unmount(self.available_tools)

    def _meet(self, session: Session) -> None:
        self._use_servers(session)
        super()._meet(session)
        self._without_servers = self._beside
        self._say()
        self._mounts.start()

    async def _settle(self, run: Run, request: str | None) -> str | None:
        if first_open(self.memory.messages) is not None:  # a call of a server's tool may be among those that run now
            await self._serve()
        return await super()._settle(run, request)

    # ---- at each step

    async def think(self) -> bool:
        self._current()
        await self._serve()
        return await super().think() if await self._can_go_on() else False

    async def _serve(self) -> None:
        """Have the tools that there are now."""
        await self._mounts.settle()
        if await self._mounts.renew(self.available_tools):
            self._say()

    def _say(self) -> None:
        """The words of servers change together with the list of tools, or not at all: what stands before history stays the same."""
        self._beside = "\n\n".join(filter(None, (self._without_servers, self._mounts.instructions)))

    async def _can_go_on(self) -> bool:
        """Whether there is what this agent needs; else the run has been ended."""
        return True
