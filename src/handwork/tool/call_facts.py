"""What a tool reads off its context: how much time is left, and whether earlier results of it are in the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from handwork.errors import ToolError
from handwork.schema import Message, Role
from handwork.tool.base import ToolContext

_NEVER_BEGAN = ("Not executed:", "Error: Invalid arguments for ")
"""How the answer to a call begins that never reached its tool."""


def time_left(context: ToolContext, timeout: float | None, default: float) -> float:
    """The seconds that a call may take: what the model asked for, else `default`, and never beyond the run's deadline.

    Errors: ToolError when it asks for no time at all.
    """
    seconds = default if timeout is None else timeout
    if not seconds > 0:
        raise ToolError(f"Invalid `timeout` {timeout}: give a number of seconds above 0.")
    if context.deadline is None:
        return seconds
    return max(min(seconds, context.deadline - asyncio.get_running_loop().time()), 0.01)


def has_results_of(name: str, history: Sequence[Message]) -> bool:
    """Whether a tool of this name has run before: then a resource made now is not the one that it used.

    A call that was denied, or whose arguments did not fit, has used nothing.
    """
    return any(
        message.role is Role.TOOL and message.name == name and not (message.content or "").startswith(_NEVER_BEGAN)
        for message in history
    )
