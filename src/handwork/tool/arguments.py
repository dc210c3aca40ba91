"""From the raw text of a call's arguments to a dict that the tool takes, or to an error that tells the model what is wrong."""

from __future__ import annotations

import functools
import inspect
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from handwork.errors import ArgumentsError
from handwork.schema import JSON, scrub
from handwork.tool.base import Tool
from handwork.tool.check import unknown_parameter, validate
from handwork.tool.rules import branch_for, properties_of, types_of
from handwork.tool.wording import given, short, shown, spot

__all__ = ["ArgumentsError", "parse", "prepare", "validate"]

MAX_DEPTH = 100
"""Levels of nesting that arguments may have: far more than any tool needs, far less than breaks a recursive reader."""
_WRAPPERS = ("arguments", "parameters", "input")
_HINTS = {
    "Extra data": "the arguments must be one JSON object and nothing after it",
    "Invalid control character at": "a line break or tab inside a string is written \\n or \\t",
    "Invalid \\escape": 'a backslash inside a string is written \\\\, and only " and \\ are escaped by one',
    "Unterminated string starting at": "the closing quote is missing: was the text cut off?",
    "Expecting property name enclosed in double quotes": 'names and strings stand in double quotes, no comma before "}"',
}


def prepare(tool: Tool, raw: str) -> dict[str, JSON]:
    """Everything between the model's text and `tool.execute(**arguments)`: parse, validate, and what execute itself takes.

    Raises ArgumentsError, also for names that the schema lets through and execute does not take, or needs and lacks.
    """
    arguments = parse(raw, tool.parameters, tool.name)
    check(tool, arguments)
    return arguments


def check(tool: Tool, arguments: Mapping[str, JSON]) -> None:
    """Raise ArgumentsError unless the tool can be called with these arguments."""
    validate(arguments, tool.parameters)
    takes = _takes(getattr(tool.execute, "__func__", tool.execute), inspect.ismethod(tool.execute))
    for name in arguments:
        ours = name in takes.ours or (name == "context" and tool.wants_context)
        if ours or not (takes.any or name in takes.names):
            raise ArgumentsError("schema", unknown_parameter(name, tool.parameters))
    missing = [repr(name) for name in takes.needed if name not in arguments]
    if missing:
        raise ArgumentsError("schema", f"missing: {', '.join(missing)}")


@dataclass(frozen=True, slots=True)
class _Takes:
    """What an execute can be called with: `any` is whether it takes every name, `ours` are names that a model cannot give."""

    names: frozenset[str]
    needed: tuple[str, ...]
    any: bool
    ours: frozenset[str]


@functools.lru_cache(maxsize=512)
def _takes(execute: Callable[..., Any], is_method: bool) -> _Takes:
    """A memo by the function: reading a signature takes longer than all the rest."""
    parameters = list(inspect.signature(execute).parameters.values())
    own, parameters = (parameters[:1], parameters[1:]) if is_method else ([], parameters)
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    return _Takes(
        names=frozenset(one.name for one in named),
        needed=tuple(one.name for one in named if one.default is one.empty and one.name != "context"),
        any=any(one.kind is one.VAR_KEYWORD for one in parameters),
        ours=frozenset(one.name for one in own if one.kind is not one.POSITIONAL_ONLY),
    )


def parse(raw: str, schema: Mapping[str, JSON], name: str = "") -> dict[str, JSON]:
    """The arguments as a dict; not yet validated.

    Empty text is {}. Accepted besides a plain object (CONTRACT B11): JSON encoded twice, as a whole or in a value where the
    schema wants an object or array; an object in a wrapper of one key (`arguments`, `parameters`, `input` or the
    tool's name) that is itself no parameter; and null for an optional parameter that cannot be null, which is absent then.

    Args:
        raw: the text as the model sent it.
        schema: the tool's parameters.
        name: the tool's name, for the wrapper of that name.

    Raises ArgumentsError("json") with the position and what was expected: bad JSON, text after it, NaN and infinities,
    a name given twice, lone surrogates, more than 100 levels, integers of more than 4,300 digits, anything but an object.
    """
    value: Any = _decode(raw) if raw.strip() else {}
    if isinstance(value, str):
        value = _decode(value) if value.strip() else {}
    if value is None and not schema.get("required"):
        value = {}
    if not isinstance(value, dict):
        raise _refused(f"expected an object of arguments, given {given(value)}")
    properties = properties_of(schema)
    arguments: dict[str, JSON] = _unwrapped(value, schema, properties, name) if len(value) == 1 else value
    for key, item in arguments.items():
        if isinstance(item, (str, list, dict)) and key in properties:
            arguments[key] = _unpacked(item, properties[key], schema)
    return _given(arguments, schema, schema)


def _unwrapped(
    value: dict[str, JSON], schema: Mapping[str, JSON], properties: Mapping[str, JSON], name: str
) -> dict[str, JSON]:
    """What stands in a wrapper, unless the tool could mean the wrapper's key."""
    key, inner = next(iter(value.items()))
    if key in properties or not (key in _WRAPPERS or (name and key == name)):
        return value
    if "patternProperties" in schema or schema.get("additionalProperties", False) is not False:
        return value
    inner = _opened(inner, {"object"})
    if not isinstance(inner, dict):
        return value
    made: dict[str, JSON] = inner
    # without declared parameters, only an empty wrapper is surely one
    return made if properties or not made else value


def _unpacked(value: JSON, rule: JSON, root: Mapping[str, JSON]) -> JSON:
    """The value with every string opened that holds the object or array which the schema wants in its place."""
    if isinstance(value, str):
        allowed = types_of(rule, root)
        if not allowed or "string" in allowed:
            return value
        opened = _opened(value, allowed)
        return value if opened is value else _unpacked(opened, rule, root)
    if not isinstance(value, (list, dict)) or (branch := branch_for(value, rule, root)) is None:
        return value
    if isinstance(value, list):
        return [_unpacked(item, branch.get("items"), root) for item in value]
    properties = properties_of(branch)
    unpacked = {key: _unpacked(item, properties.get(key), root) for key, item in value.items()}
    return _given(unpacked, branch, root)


def _given(value: dict[str, JSON], rule: Mapping[str, JSON], root: Mapping[str, JSON]) -> dict[str, JSON]:
    """Without each null that stands for an optional property which is absent: models in a strict mode send all of them."""
    if None not in value.values():
        return value
    properties, required = properties_of(rule), rule.get("required")
    kept = required if isinstance(required, list) else []

    def absent(key: str) -> bool:
        allowed = types_of(properties[key], root) if key in properties and key not in kept else frozenset[str]()
        return bool(allowed) and "null" not in allowed

    return {key: item for key, item in value.items() if not (item is None and absent(key))}


def _opened(value: JSON, allowed: frozenset[str] | set[str]) -> JSON:
    """The object or array that a string holds, if one of these types is allowed; else the value itself."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        made = _decode(value)
    except ArgumentsError:
        return value
    return made if ("object" if isinstance(made, dict) else "array") in allowed else value


def _once(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    made = dict(pairs)
    if len(made) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise _refused(f"the name {shown(twice)} is given twice in one object")
    return made


def _no_constant(text: str) -> NoReturn:
    raise _refused(f"{text} is no JSON; expected a number, or null")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _refused(f"the number {shown(text)} is too large")
    return number


_decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite)


def _decode(text: str) -> JSON:
    """Strict JSON; ArgumentsError says where it breaks and what was expected."""
    text = text.lstrip("\ufeff")
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise _refused(_explained(error)) from None
    except RecursionError:
        raise _refused(f"nested too deeply: at most {MAX_DEPTH} levels are read") from None
    except ValueError:  # not a JSONDecodeError: Python's limit on the digits of an integer
        raise _refused("an integer has more than 4,300 digits; write it as a string") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise _refused(f"nested too deeply: at most {MAX_DEPTH} levels are read")
    if "\\u" in text or scrub(text) is not text:
        _refuse_surrogates(value)
    return value


def _depth(value: JSON) -> int:
    """How many levels an array or object has; level by level, as recursion is what must not happen here."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, (list, dict))]:
        depth += 1
        level = [item for group in level for item in (group.values() if isinstance(group, dict) else group)]
    return depth


def _refuse_surrogates(value: JSON, path: tuple[str | int, ...] = ()) -> None:
    if isinstance(value, str):
        if scrub(value) is not value:
            raise _refused(f"{spot(path)} holds half of a surrogate pair (\\ud800 to \\udfff), which is no character")
    elif isinstance(value, dict):
        for name, item in value.items():
            _refuse_surrogates(name, path)
            _refuse_surrogates(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_surrogates(item, (*path, index))


def _explained(error: json.JSONDecodeError) -> str:
    message = error.msg[0].lower() + error.msg[1:].removesuffix(" at")
    around = short(error.doc[max(error.pos - 20, 0) : error.pos + 20])
    ended = error.pos >= len(error.doc.rstrip())
    place = "the end of the text" if ended else f"line {error.lineno} column {error.colno}"
    hint = next((f"; {hint}" for start, hint in _HINTS.items() if error.msg.startswith(start)), "")
    return f"{message} at {place} (character {error.pos}), near `{around}`{hint}"


def _refused(problem: str) -> ArgumentsError:
    return ArgumentsError("json", f"Invalid JSON format: {problem}")
