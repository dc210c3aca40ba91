"""MCP servers without an agent: a collection of their tools with a sandbox of its own (CONTRACT D12)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from handwork.config import MCPServerSettings, Settings, load_settings
from handwork.errors import MCPUnavailable
from handwork.mcp.connection import Connection
from handwork.mcp.described import described
from handwork.mcp.names import tool_names
from handwork.mcp.offer import Offer
from handwork.mcp.surroundings import Surroundings
from handwork.mcp.tool import MCPClientTool
from handwork.sandbox.base import Process, Sandbox
from handwork.sandbox.open import open_sandbox
from handwork.tool.collection import ToolCollection

MOST_NOTICES = 1000


class MCPClients(ToolCollection):
    """The tools of servers that are connected here; `async with MCPClients() as clients:` ends all of them.

    Programs run in a sandbox that sees `workspace` (the current folder) and nothing else; it is opened with the first one and closed
    with the last. Nobody is asked anything (what a server asks is answered cancel), and nothing is remembered: definitions are taken
    as they come.

    Args:
        workspace: the folder that servers may change.
        settings: None looks them up as the command line does; [sandbox] says what the sandbox is.
    """

    description = "Tools of MCP servers."

    def __init__(self, *, workspace: str | Path | None = None, settings: Settings | None = None) -> None:
        super().__init__()
        self.name = "mcp"
        self.notices: list[str] = []
        """What a person should know; the newest of it, for servers may say as much as they like."""
        self._workspace = Path(workspace or Path.cwd()).absolute()
        self._settings = settings
        self._connections: dict[str, Connection] = {}
        self._sandbox: Sandbox | None = None
        self._artifacts: tempfile.TemporaryDirectory[str] | None = None

    @property
    def sessions(self) -> Mapping[str, Connection]:
        """The connections, by the servers' names."""
        return MappingProxyType(self._connections)

    async def connect_stdio(self, command: str, args: Sequence[str] = (), server_id: str = "") -> None:
        """Start a server by a command; one of that name that is connected is ended first. Raises MCPServerError."""
        if not command:
            raise ValueError("Server command is required.")
        name = server_id or command
        await self.connect(name, described(name, {"type": "stdio", "command": command, "args": list(args)}))

    async def connect_sse(self, server_url: str, server_id: str = "") -> None:
        """Connect to a server at an address. Raises MCPServerError."""
        if not server_url:
            raise ValueError("Server URL is required.")
        name = server_id or server_url
        await self.connect(name, described(name, {"type": "sse", "url": server_url}))

    async def connect(self, name: str, server: MCPServerSettings | Mapping[str, Any]) -> None:
        """Connect to a server as mcp.json describes one. Raises ConfigError, MCPServerError."""
        settings = described(name, server, self._known_settings().environ, str(self._workspace))
        if name in self._connections:
            await self.disconnect(name)
        connection = Connection(name, settings, self._surroundings())
        try:
            offer = await connection.ready()
            self._mount(connection, offer)
        except BaseException:
            await connection.close()
            await self._close_if_empty()
            raise
        self._connections[name] = connection

    async def list_tools(self) -> Offer:
        """Ask all servers for their tools anew; the collection holds them then. Raises MCPServerError."""
        offers = [(connection, await connection.refresh()) for connection in self._connections.values()]
        for connection, offer in offers:
            self._unmount(connection.name)
            self._mount(connection, offer)
        return Offer(tools=tuple(tool for _, offer in offers for tool in offer.tools))

    async def disconnect(self, server_id: str = "") -> None:
        """End a server's connection, '' all of them; one that is not there is no error."""
        for name in [server_id] if server_id else list(self._connections):
            if (connection := self._connections.pop(name, None)) is not None:
                self._unmount(name)
                await connection.close()
        await self._close_if_empty()

    async def cleanup(self) -> None:
        """End everything."""
        await self.disconnect()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.cleanup()

    # ---- tools

    def _mount(self, connection: Connection, offer: Offer) -> None:
        names = tool_names(
            connection.name, [tool.name for tool in offer.tools], servers=self._connections, taken=tuple(self.tool_map)
        )
        self.add_tools(*(MCPClientTool(tool, connection, name=names[tool.name]) for tool in offer.tools))

    def _unmount(self, server: str) -> None:
        for tool in self.tools:
            if isinstance(tool, MCPClientTool) and tool.server == server:
                self.remove_tool(tool.name)

    # ---- where they run

    def _surroundings(self) -> Surroundings:
        settings = self._known_settings()
        return Surroundings(
            spawn=self._spawn,
            workspace=str(self._workspace),
            home=settings.home.config / "mcp",
            notify=self._notify,
            environ=settings.environ,
        )

    def _known_settings(self) -> Settings:
        self._settings = self._settings or load_settings(workspace=self._workspace)
        return self._settings

    def _notify(self, level: str, text: str) -> None:
        self.notices.append(text)
        del self.notices[:-MOST_NOTICES]

    async def _spawn(self, argv: Sequence[str], *, cwd: str | None, env: Mapping[str, str], contained: bool) -> Process:
        if not contained:
            raise MCPUnavailable(
                "Beside the sandbox a server runs for an agent alone, whose user is told so", lasting=True
            )
        return await self._opened().spawn(argv, cwd=cwd, env=env, stdin=True, apart=True)

    def _opened(self) -> Sandbox:
        if self._sandbox is None:
            settings = self._known_settings()
            self._artifacts = self._artifacts or tempfile.TemporaryDirectory(prefix="handwork-mcp-")
            self._sandbox = open_sandbox(
                settings.sandbox,
                workspace=self._workspace,
                artifacts=Path(self._artifacts.name),
                notify=self._notify,
                hide=settings.own_files,
                environ=settings.environ,
            )
        return self._sandbox

    async def _close_if_empty(self) -> None:
        if self._connections:
            return
        sandbox, self._sandbox = self._sandbox, None
        artifacts, self._artifacts = self._artifacts, None
        if sandbox is not None:
            await sandbox.close()
        if artifacts is not None:
            artifacts.cleanup()
