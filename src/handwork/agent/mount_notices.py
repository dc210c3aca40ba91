"""What a run tells its user about MCP servers that are not there, and that come back."""

from __future__ import annotations

from handwork.errors import HandworkError
from handwork.mcp.own_command import own_command

SLOW = "The MCP server {name} is not there after {seconds:g} s: the work begins without its tools, which come when it does."
BACK = "The MCP server {name} is there now."


def missing(name: str, error: HandworkError, *, configured: bool) -> str:
    """Why a server is not there, and the way on: the error's own, else, of one that is `configured`, a closer look."""
    hint = error.hint or (f"look at it: {own_command('test', name)}" if configured else "")
    return f"{error.what} – {hint}" if hint else error.what
