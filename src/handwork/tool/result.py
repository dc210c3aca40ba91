"""Whatever a tool returns, as a ToolResult whose output is text for the model."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json, to_json

from handwork.schema import ToolResult


def normalise(value: Any) -> ToolResult:
    """Make a ToolResult of a tool's return value (CONTRACT D12).

    A ToolResult keeps all it has. None is an empty result, text stays as it is, bytes are read as UTF-8 or described, and
    anything else becomes JSON: pydantic models, dataclasses, dates, paths, sets, enums. What JSON cannot say is shown as
    Python shows it.
    """
    if isinstance(value, ToolResult):
        if value.output is None or isinstance(value.output, str):
            return value
        return value.replace(output=as_text(value.output))
    return ToolResult() if value is None else ToolResult(output=as_text(value))


def as_text(value: Any) -> str:
    """A value as the model reads it: text as it is, everything else as compact JSON."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _of_bytes(bytes(value))
    try:
        text = to_json(value, fallback=str, bytes_mode="base64", inf_nan_mode="strings").decode()
    except (ValueError, TypeError):  # it holds itself, is too deep, or has text or keys that JSON cannot say
        return repr(value)
    if not text.startswith('"'):
        return text
    plain = from_json(text)
    return plain if isinstance(plain, str) else text


def _of_bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"({len(data)} bytes that are no text; a tool saves such data with context.save_artifact)"
