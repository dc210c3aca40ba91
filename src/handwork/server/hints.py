"""What a tool's declared actions say about it in MCP's words: read-only, destructive, idempotent, open world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from handwork.config import Settings
from handwork.schema import JSON, Action
from handwork.schema.plans import OWN_PLAN
from handwork.tool.base import Tool

_MOST = 64
"""Samples of arguments that are looked at."""


@dataclass(frozen=True, slots=True)
class Hints:
    """MCP's ToolAnnotations; what is true of the worst call that the tool can be given."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


def hints(tool: Tool, settings: Settings) -> Hints:
    """What may be promised of a tool, over all commands that it knows."""
    actions = [action for arguments in _samples(tool.parameters) for action in tool.actions(arguments)]
    own = [action for action in actions if action.resource == OWN_PLAN]
    outward = [action for action in actions if action not in own]
    read_only = all(action.kind == "read" for action in actions)
    return Hints(
        read_only=read_only,
        destructive=any(action.kind in ("write", "execute") for action in outward),
        idempotent=read_only or all(action.repeatable for action in actions),
        open_world=any(_reaches_out(action, settings) for action in outward),
    )


def _reaches_out(action: Action, settings: Settings) -> bool:
    """Whether the call can meet the world: programs can where the sandbox has a network."""
    if action.kind == "execute":
        place = settings.sandbox
        return bool(place.network or place.allow_net or place.chosen in ("host", "daytona", "docker"))
    return action.kind in ("network", "ask")


def _samples(schema: Mapping[str, JSON]) -> Iterator[dict[str, JSON]]:
    """Arguments of each kind that a schema names: every value of its enumerations that must be given, any text for the rest."""
    given = schema.get("properties")
    properties: Mapping[str, JSON] = given if isinstance(given, dict) else {}
    required = schema.get("required")
    names = [str(name) for name in required] if isinstance(required, list) else []
    choices = [_values(properties.get(name)) for name in names]
    for count, values in enumerate(product(*choices)):
        if count == _MOST:
            return
        yield dict(zip(names, values, strict=True))


def _values(schema: JSON) -> list[JSON]:
    if isinstance(schema, dict) and isinstance(listed := schema.get("enum"), list) and listed:
        return listed
    return ["x"]
