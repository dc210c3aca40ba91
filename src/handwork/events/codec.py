"""Events as JSON: written strictly, read leniently."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from handwork.events.kinds import AnyEvent, Event, UnknownEvent

_UNKNOWN_FIELD = ("extra_forbidden", "unexpected_keyword_argument")
"""How models and dataclasses say that they do not know a field."""
_adapter: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)


def read_event(raw: bytes) -> Event:
    """Read one event, as leniently as writing is strict: unknown fields are passed over, unknown kinds become UnknownEvent.

    Whoever stores events keeps the raw bytes and writes those back, so that nothing of a newer version is lost.
    """
    try:
        return _adapter.validate_json(raw)
    except ValidationError as error:
        data = from_json(raw)
        for problem in error.errors(include_url=False, include_context=False, include_input=False):
            if problem["type"] not in _UNKNOWN_FIELD:
                return _unknown(data, raw)
            _drop(data, problem["loc"][1:])
        try:
            return _adapter.validate_python(data)
        except ValidationError:
            return _unknown(data, raw)


def _drop(data: Any, path: tuple[int | str, ...]) -> None:
    *parents, last = path
    for part in parents:
        data = data[part]
    del data[last]


def _unknown(data: dict[str, Any], raw: bytes) -> UnknownEvent:
    known = {name: data[name] for name in Event.model_fields if name in data}
    return UnknownEvent(type=str(data.get("type")), raw=raw, **known)


def write_event(event: Event) -> bytes:
    """The event as one line of JSON in UTF-8."""
    return event.raw if isinstance(event, UnknownEvent) else event.__pydantic_serializer__.to_json(event)
