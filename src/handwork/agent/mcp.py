"""MCPAgent: the role that works with the tools of exactly one MCP server."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from handwork.agent.mounts import Mounts
from handwork.agent.prompt import prompt_file, read_prompt
from handwork.agent.with_servers import WithServers
from handwork.config import MCPServerSettings, Settings
from handwork.errors import ConfigError
from handwork.mcp.described import described
from handwork.schema import AgentState, Message, Role
from handwork.session import Session
from handwork.tool.collection import ToolCollection
from handwork.tool.terminate import Terminate

AVAILABLE, NEW, NO_LONGER = "Available MCP tools: ", "New tools available: ", "Tools no longer available: "
"""How the notes to the model begin, each before the tools' names."""
_EVERY = 5
"""Steps after which the list of tools is asked for anew, whether the server said something or not."""
_OPENMANUS, _OURS = "app.mcp.server", "handwork"
_PASSED = ("HANDWORK_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
_NO_TOOLS = "The MCP server {name} offers no tools that can be used: there is nothing left to work with."
_GONE = "{why}. There is nothing left to work with."


class MCPAgent(WithServers):
    """An agent of one MCP server: its tools under their own names, and terminate.

    The server is the one given to `initialize`, else the one of the field `mcp_servers`, else the first that is configured, else what
    [mcp] server_reference names. A server that was never there is an error; one that goes, or has no tools left, ends the run.
    """

    name = "mcp"
    description = "An agent that works with the tools of an MCP server."
    system_prompt = prompt_file("mcp_system")
    next_step_prompt = prompt_file("mcp_next_step")
    available_tools = ToolCollection(Terminate)
    max_steps = 20
    connection_type: str = "stdio"

    def __init__(self, **fields: Any) -> None:
        self._told: tuple[str, ...] | None = None
        """The tools that the model was told of."""
        self._looked = 0
        super().__init__(**fields)

    def _new_mounts(self) -> Mounts:
        return Mounts(plain=True, quiet=True)

    async def initialize(
        self,
        connection_type: str | None = None,
        server_url: str | None = None,
        command: str | None = None,
        args: Sequence[str] | None = None,
    ) -> None:
        """Connect to a server: `sse` or `http` at an address, or `stdio` by a command; without anything, to the configured one.

        Raises ValueError for what describes no server, MCPServerError if it cannot be reached.
        """
        if connection_type or server_url or command:
            self.connection_type = connection_type or self.connection_type
            self.mcp_servers = _named(self.connection_type, server_url, command, args)
        await self.initialize_mcp_servers()

    async def initialize_mcp_servers(self) -> None:
        """Connect to the server now. Raises MCPServerError if it cannot be reached."""
        await super().initialize_mcp_servers()
        await self._mounts.connect(self._server)
        await self._serve()

    @property
    def _server(self) -> str:
        return self._mounts.names[0]

    def _chosen_servers(self, session: Session) -> dict[str, MCPServerSettings]:
        found = super()._chosen_servers(session)
        if len(found) > 1 and self.mcp_servers is not None:
            raise ConfigError(
                f"The agent {self.name} works with one MCP server, and several are named: {', '.join(found)}"
            )
        if not found:
            return _reference(session.settings)
        (name, *others) = found
        if others and session is not self._served:
            session.notify(
                "info", f"The agent {self.name} works with the MCP server {name}, not with {', '.join(others)}."
            )
        return {name: found[name]}

    # ---- at each step

    async def _serve(self) -> None:
        if self.current_step and self.current_step % _EVERY == 0 and self.current_step != self._looked:
            self._looked = self.current_step
            self._mounts.look_again()
        await super()._serve()
        self._tell_tools()

    def _tell_tools(self) -> None:
        """Have the model know what it can call: all of it once, then what changed."""
        there = tuple(sorted(self._mounts[self._server].shown)) if self._mounts.names else ()
        if self._told is None:
            if there and not _is_told(self.messages, note := AVAILABLE + ", ".join(there)):
                self.memory.add_message(Message.user_message(note))
        else:
            for beginning, names in ((NEW, _without(there, self._told)), (NO_LONGER, _without(self._told, there))):
                if names:
                    self.memory.add_message(Message.user_message(beginning + ", ".join(names)))
        if there or self._told is not None:
            self._told = there

    async def _can_go_on(self) -> bool:
        """A server that goes, or keeps no tool, leaves nothing to do: what was done so far stands. One that was never there is an
        error: nothing was done, and whoever asked for it must hear of it."""
        mount = self._mounts[self._server]
        if mount.connection.offer is None:
            await self._mounts.connect(self._server)
            await self._serve()
        if mount.shown:
            return True
        why = mount.connection.failure
        self._current().notice("warning", _GONE.format(why=why) if why else _NO_TOOLS.format(name=mount.name))
        self.state = AgentState.FINISHED
        return False

    def _should_finish_execution(self, **kwargs: Any) -> bool:
        return str(kwargs.get("name", "")).lower() == Terminate.name

    async def _handle_special_tool(self, name: str, result: Any, **kwargs: Any) -> None:
        await super()._handle_special_tool(name, result, **kwargs)
        if result.base64_image or result.images:
            self._current().nudge = read_prompt("mcp_multimedia").replace("{tool}", name)


def _named(kind: str, server_url: str | None, command: str | None, args: Sequence[str] | None) -> dict[str, Any]:
    """The one server that `initialize` was given, by a name of its own."""
    match kind:
        case "sse" | "http" | "streamable-http":
            if not server_url:
                raise ValueError(f"Server URL is required for {'SSE' if kind == 'sse' else 'HTTP'} connection")
            return {server_url: described(server_url, {"type": kind, "url": server_url})}
        case "stdio":
            if not command:
                raise ValueError("Command is required for stdio connection")
            return {command: described(command, {"type": kind, "command": command, "args": list(args or ())})}
    raise ValueError(f"Unsupported connection type: {kind}")


def _reference(settings: Settings) -> dict[str, MCPServerSettings]:
    """The server of [mcp] server_reference: ours opens a sandbox of its own for its tools, so it runs beside this one; -P keeps
    modules in the workspace from being taken for its own."""
    module = settings.mcp.server_reference
    if module != _OPENMANUS:
        return {module: MCPServerSettings(command=sys.executable, args=("-m", module))}
    env = {name: settings.environ[name] for name in _PASSED if name in settings.environ}
    args = ("-P", "-m", "handwork", "mcp", "serve")
    return {_OURS: MCPServerSettings(command=sys.executable, args=args, env=env, sandbox=False)}


def _without(names: Sequence[str], others: Sequence[str]) -> list[str]:
    return [name for name in names if name not in others]


def _is_told(messages: Sequence[Message], note: str) -> bool:
    """Whether this is what the history says last of the tools."""
    notes = (each for each in reversed(messages) if each.role is Role.USER and _is_note(each.content or ""))
    last = next(notes, None)
    return last is not None and last.content == note


def _is_note(text: str) -> bool:
    return text.startswith((AVAILABLE, NEW, NO_LONGER))
