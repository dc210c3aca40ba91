"""What came of calls, as messages of the history and as the hooks get it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from handwork.schema import Message, Role, ToolCall, ToolResult
from handwork.store.past import Outcome


def messages_of_results(calls: Iterable[ToolCall], outcomes: Iterable[Outcome]) -> list[Message]:
    """A tool message for each call, in order, then the pictures: each names its call, so that a wire that takes pictures in
    results can put it there (CONTRACT B9)."""
    texts: list[Message] = []
    pictures: list[Message] = []
    for call, outcome in zip(calls, outcomes, strict=True):
        name = call.function.name
        texts.append(Message.tool_message(outcome.observation, name or "unknown", call.id, is_error=outcome.is_error))
        for image in outcome.images:
            shown = f"Image returned by {name}:"
            pictures.append(Message(role=Role.USER, content=shown, images=(image,), tool_call_id=call.id))
    return texts + pictures


def result_of(outcome: Outcome) -> ToolResult:
    """An outcome of an earlier run, as the tool may have returned it."""
    if outcome.is_error:
        return ToolResult(error=outcome.observation, details=outcome.details)
    return ToolResult(output=outcome.observation, details=outcome.details)


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """A call's arguments; {} if they are none."""
    try:
        made = json.loads(call.function.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return made if isinstance(made, dict) else {}
