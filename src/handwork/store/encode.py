"""An event as the bytes of its row: writing never fails on what a model or a tool put into it, and what is written can be read."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from handwork.errors import JournalError
from handwork.events import Event, MessageAdded, PlanChanged, ToolCallFinished, UnknownEvent, read_event, write_event
from handwork.schema import JSON, scrub

MAX_ROW = 1 << 28
"""Bytes of one row or picture; SQLite itself refuses 1,000,000,000 and would refuse it again at every later commit."""
_MAX_DEPTH = 100
_MAX_INT = 1 << 63
_UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)


def encode(event: Event) -> bytes:
    """The event's JSON. Lone surrogates, foreign objects, numbers and depths that no reader takes are replaced, never refused.

    Raises JournalError for an event beyond MAX_ROW.
    """
    try:
        raw = write_event(event)
        if _holds_free_json(event):
            from_json(raw)
    except (PydanticSerializationError, *_UNREADABLE):
        raw = to_json(_plain(event.model_dump(mode="python"), 0))
    if len(raw) > MAX_ROW:
        raise JournalError(f"An event of {len(raw):,} bytes is too large to be stored; the limit is {MAX_ROW:,}")
    return raw


def decode(session_id: str, seq: int, raw: bytes) -> Event:
    """The event of a row; one that cannot be read at all becomes an UnknownEvent, so that the rest still loads."""
    try:
        return read_event(raw)
    except _UNREADABLE:
        return UnknownEvent(type="unreadable", session_id=session_id, seq=seq, raw=raw)


def _holds_free_json(event: Event) -> bool:
    """Whether parts of it are JSON of a tool's or a provider's own making, which may be deeper or larger than readers take."""
    if isinstance(event, ToolCallFinished):
        return event.details is not None
    if isinstance(event, MessageAdded):
        message = event.message
        return message.opaque is not None or any(part.opaque is not None for part in message.thinking)
    return isinstance(event, PlanChanged | UnknownEvent)


def _plain(value: Any, depth: int) -> JSON:
    if isinstance(value, str):
        return scrub(str(value))
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return int(value) if -_MAX_INT <= value < _MAX_INT else f"an integer of {value.bit_length()} bits"
    if isinstance(value, dict | list | tuple | set | frozenset) and depth >= _MAX_DEPTH:
        return f"left out: nested deeper than {_MAX_DEPTH} levels"
    if isinstance(value, dict):
        return {scrub(str(key)): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth + 1) for item in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return f"left out: {type(value).__name__} is no JSON"
