"""Arguments that stood in tags, as JSON: what a tag does not say, the tool's schema does."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from handwork.llm.written.json_slices import end_of_value
from handwork.schema import JSON


def arguments_of(texts: Mapping[str, tuple[str, bool | None]], schema: Mapping[str, JSON]) -> str:
    """Arguments that stood in tags as JSON: by their mark, else by the tool's schema a text, else what it reads as."""
    properties = schema.get("properties") or {}
    parts = []
    for name, (text, is_json) in texts.items():
        if is_json is None:
            is_json = not _takes_text(properties.get(name))
        parts.append(f"{json.dumps(name)}:{_value(text) if is_json else json.dumps(text)}")
    return "{" + ",".join(parts) + "}"


def _takes_text(schema: JSON) -> bool:
    if not isinstance(schema, dict):
        return True
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    alternatives = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
    return "string" in kinds or (not kinds and not alternatives) or any(map(_takes_text, alternatives))


def _value(text: str) -> str:
    stripped = text.strip()
    return (
        stripped if stripped and end_of_value(stripped, 0) == len(stripped) and _is_json(stripped) else json.dumps(text)
    )


def _is_json(text: str) -> bool:
    if text[0] in '{["':
        return True  # whether it is good JSON is found like that of any call
    return re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?|true|false|null", text) is not None
