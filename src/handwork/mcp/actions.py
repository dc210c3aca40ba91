"""What a server's tool does to which resource, as far as its own hints are to be believed: unsaid is the worst."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from handwork.schema import JSON, Action

WORST = Action(kind="execute", resource="*")


def resource_of(server: str) -> str:
    """The server as a resource of its own."""
    return f"mcp://{quote(server, safe='')}"


def actions_of(server: str, annotations: Mapping[str, JSON]) -> tuple[Action, ...]:
    """The actions of a tool with these annotations; a hint that is no boolean is unsaid, and then the protocol's default holds.

    What only reads and reaches nothing but the server reads the server. What only reads but may reach any place is a network action:
    the arguments of a mere read can carry data out. What adds to the server and destroys nothing writes to it. All else
    may do anything.
    """
    reads, closed = annotations.get("readOnlyHint") is True, annotations.get("openWorldHint") is False
    if reads and closed:
        return (Action(kind="read", resource=resource_of(server), repeatable=True),)
    if reads:
        return (Action(kind="network", resource="*", repeatable=True),)
    if annotations.get("destructiveHint") is False and closed:
        again = annotations.get("idempotentHint") is True
        return (Action(kind="write", resource=resource_of(server), repeatable=again),)
    return (WORST,)
