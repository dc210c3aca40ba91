"""A call in the words of people: the command, not the JSON around it."""

from __future__ import annotations

import json

from handwork.schema import JSON, ToolCall

_MAIN = ("command", "code", "inquire")
"""Arguments that say everything when they stand alone."""


def call_in_words(call: ToolCall, limit: int) -> str:
    """The tool's name and what it was to do; the middle of a text of more than `limit` characters is left out."""
    name = call.function.name or "unnamed tool"
    what = _what(call.function.arguments)
    if len(what) > limit:
        half = max(1, (limit - 3) // 2)
        what = f"{what[:half]} … {what[-half:]}"
    if not what:
        return name
    return f"{name}:\n{what}" if "\n" in what else f"{name}: {what}"


def _what(raw: str) -> str:
    try:
        arguments: JSON = json.loads(raw or "{}")
    except (ValueError, RecursionError):
        return raw
    if not isinstance(arguments, dict):
        return raw
    if len(arguments) == 1:
        ((name, value),) = arguments.items()
        if isinstance(value, str) and name in _MAIN:
            return value
    shown = [(name, _text(value)) for name, value in arguments.items()]
    several = any("\n" in text for _, text in shown)
    return "\n".join(f"{name}: {text}" for name, text in shown) if several else ", ".join(f"{n}={t}" for n, t in shown)


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
