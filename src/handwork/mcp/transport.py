"""The way to an MCP server, by what its settings say: which of the transports carries the messages."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol

from handwork.config import MCPServerSettings
from handwork.errors import MCPUnavailable
from handwork.mcp.http import Http
from handwork.mcp.lacking import Lacking
from handwork.mcp.quiet import keep_quiet
from handwork.mcp.stdio import Stdio
from handwork.mcp.surroundings import Surroundings


class Way(Protocol):
    """What carries messages: entered in the task that owns the connection, it gives the SDK's two streams of SessionMessage.

    Entering raises MCPUnavailable. Nothing comes any more when the first stream ends; `failure` is why, if that is known: with `how`
    given ("did not answer within 5 s"), that is the reason, and the rest is what else is known of it. `noise` counts the lines that
    were no messages, `kind` is the transport as it turned out to be. Leaving ends all that it has started, also while its task is
    cancelled.
    """

    noise: int
    kind: str

    async def __aenter__(self) -> tuple[Any, Any]: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...

    def failure(self, how: str = "") -> MCPUnavailable | None: ...


def transport(name: str, settings: MCPServerSettings, surroundings: Surroundings, *, kind: str = "") -> Way:
    """The way to a server; nothing is started before it is entered. `kind` is what an earlier one turned out to be."""
    keep_quiet()
    if settings.unset:
        return Lacking(name, settings.unset)
    if settings.type == "stdio":
        return Stdio(name, settings, surroundings)
    return Http(name, settings, surroundings, kind=kind)
