"""JSON in and out: the fast parser, with the standard library's for the one thing it refuses (a lone surrogate)."""

from __future__ import annotations

import json

from pydantic_core import PydanticSerializationError, from_json, to_json

from handwork.schema import JSON, scrub


def parse(raw: bytes) -> JSON:
    """The value in `raw`. Strings may hold lone surrogates (half of a pair that was split over two events): see `scrub`.

    Raises:
        ValueError: no JSON, nested too deep, or a number of absurd length.
    """
    try:
        return from_json(raw)
    except ValueError:
        try:
            return json.loads(raw)
        except RecursionError as error:
            raise ValueError("nested too deep") from error


def dump(value: JSON) -> bytes:
    """The value as compact JSON in UTF-8; lone surrogates become replacement characters.

    Raises:
        ValueError: something in it is no JSON.
    """
    try:
        return to_json(value)
    except UnicodeEncodeError:
        return to_json(_scrubbed(value))
    except PydanticSerializationError as error:
        if "surrogate" in str(error):
            return to_json(_scrubbed(value))
        raise ValueError(str(error)) from error


def sendable(value: JSON) -> JSON:
    """The value as it comes back from `dump`: without lone surrogates, and sure to be dumped again.

    Raises:
        ValueError: it cannot be (nested too deep, not a finite number): kept, it would break every later request.
    """
    return from_json(dump(value), allow_inf_nan=False)


def _scrubbed(value: JSON) -> JSON:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {scrub(str(name)): _scrubbed(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_scrubbed(item) for item in value]
    return value
