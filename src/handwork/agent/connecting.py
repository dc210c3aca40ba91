"""Servers that a program adds to an agent and takes away again (CONTRACT C9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handwork.agent.with_servers import WithServers
from handwork.config import MCPServerSettings
from handwork.errors import MCPServerError
from handwork.mcp.described import described
from handwork.session import Session


class Connecting(WithServers):
    """An agent whose MCP servers come and go as its program says, in the middle of a run, too."""

    def __init__(self, **fields: Any) -> None:
        self._added: dict[str, MCPServerSettings] = {}
        self._removed: set[str] = set()
        super().__init__(**fields)

    @property
    def connected_servers(self) -> dict[str, str]:
        """The servers whose tools are there: each with its address or command."""
        return self._mounts.connected

    async def initialize_mcp_servers(self) -> None:
        """Connect the servers now, those that were disconnected, too; a run does it by itself."""
        self._removed.clear()
        await super().initialize_mcp_servers()

    async def connect_mcp_server(
        self, server_url: str, server_id: str = "", use_stdio: bool = False, stdio_args: Sequence[str] | None = None
    ) -> None:
        """Add a server, in the middle of a run, too. Raises MCPServerError if it cannot be reached.

        Args:
            server_url: its address; with `use_stdio` the command that starts it.
            server_id: what it is called; without one, as its address or command.
            stdio_args: the command's arguments.
        """
        if not server_url:
            raise ValueError("Server command is required" if use_stdio else "Server URL is required")
        name = server_id or server_url
        entry = {"command": server_url, "args": list(stdio_args or ())} if use_stdio else {"url": server_url}
        settings = described(name, entry)
        if name in self._mounts:
            await self._mounts.remove(name)
        self._added[name] = settings
        self._removed.discard(name)
        self._use_servers(self._session_at_hand())
        try:
            await self._mounts.connect(name)
        except MCPServerError:
            await self.disconnect_mcp_server(name)
            raise
        await self._serve()

    async def disconnect_mcp_server(self, server_id: str = "") -> None:
        """Take a server and its tools away, '' all of them; one that is not there is no error."""
        for name in [server_id] if server_id else self._mounts.names:
            self._added.pop(name, None)
            self._removed.add(name)
            if name in self._mounts:
                await self._mounts.remove(name)
        await self._serve()

    def _chosen_servers(self, session: Session) -> dict[str, MCPServerSettings]:
        servers = {**super()._chosen_servers(session), **self._added}
        return {name: each for name, each in servers.items() if name not in self._removed}
