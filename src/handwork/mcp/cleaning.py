"""What a server says, made fit to be read: nothing hidden, nothing that acts on a terminal, nothing without end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeAlias

from handwork.schema import JSON, scrub
from handwork.schema.visible import seen

LONGEST_NAME = 128
LONGEST_TEXT = 8_000
LONGEST_LINE = 300
DEEPEST = 100
"""Levels of a JSON value that is looked into: no honest schema comes near, and no recursive reader breaks on it."""
LARGEST_SCHEMA = 64 * 1024
"""Bytes: a hundred such tools fill the window of any model."""

_WORDS = frozenset({"title", "description", "$comment"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset(
    {"enum", "const", "default", "examples", "required", "pattern", "type", "dependentRequired", "format"}
)
Rule: TypeAlias = dict[str, JSON]


class Unfit(Exception):
    """Something that a server offers cannot be used; says why, as the end of a sentence."""


def clean(text: object, longest: int = LONGEST_TEXT) -> str:
    """The text as a model and a person may read it; '' for what is none."""
    if not isinstance(text, str):
        return ""
    cut = f"{text[:longest]}…" if len(text) > longest else text
    if _is_plain(cut):
        return cut
    return seen(scrub(cut).replace("\r\n", "\n").replace("\r", "\n")).text


def one_line(text: object, longest: int = LONGEST_LINE) -> str:
    """The same in one line, in which every sign can be seen."""
    line = " ".join(clean(text, longest).split())
    return "".join(sign if sign.isprintable() else f"⟨U+{ord(sign):04X}⟩" for sign in line)


def is_plain_name(name: object) -> bool:
    """Whether a name is one that people can read, and that is sent back exactly as it is shown."""
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and one_line(name, LONGEST_NAME) == name


def clean_schema(schema: JSON) -> Rule:
    """A JSON Schema whose words are cleaned. Names and values that it demands stay as they are; raises Unfit if a reader would not
    see them as they are, and for a schema that is no object, too deep or too large."""
    if not isinstance(schema, dict):
        raise Unfit("its schema is no object")
    if is_too_deep(schema):
        raise Unfit(f"its schema is nested more than {DEEPEST} levels deep")
    if len(json.dumps(schema)) > LARGEST_SCHEMA:
        raise Unfit(f"its schema is larger than {LARGEST_SCHEMA // 1024} KB")
    return {**_rule(schema)}


def is_too_deep(value: JSON) -> bool:
    """Whether a value has more than DEEPEST levels; level by level, as recursion is what must not happen here."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [item for group in level for item in _inside(group)]
        if not level:
            return False
    return True


def subschemas(rule: JSON) -> Iterator[Rule]:
    """A schema (not too deep) and all schemas in it, at any place where one may stand."""
    if isinstance(rule, list):
        for each in rule:
            yield from subschemas(each)
    if not isinstance(rule, dict):
        return
    yield rule
    for keyword, inner in rule.items():
        if keyword in _NAMED and isinstance(inner, dict):
            for each in inner.values():
                yield from subschemas(each)
        elif keyword not in _DATA:
            yield from subschemas(inner)


def _is_plain(text: str) -> bool:
    """Whether nothing needs a closer look: most texts are such, and it is known at once."""
    return text.isascii() and text.isprintable()


def _inside(value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _rule(rule: JSON) -> JSON:
    if isinstance(rule, list):
        return [_rule(each) for each in rule]
    if not isinstance(rule, dict):
        return _exact(rule)
    made: Rule = {}
    for keyword, inner in rule.items():
        _exact(keyword)
        if keyword in _WORDS and isinstance(inner, str):
            made[keyword] = clean(inner)
        elif keyword in _NAMED and isinstance(inner, dict):
            made[keyword] = {_exact(name): _rule(each) for name, each in inner.items()}
        elif keyword == "required" and isinstance(inner, list) and all(isinstance(name, str) for name in inner):
            made[keyword] = sorted(
                map(_exact, inner)
            )  # the order means nothing, and some servers give it anew each time
        elif keyword in ("default", "examples"):
            made[keyword] = _cleaned(inner)
        else:
            made[keyword] = _exact(inner) if keyword in _DATA else _rule(inner)
    return made


def _exact(value: JSON) -> JSON:
    """The value itself, if it can be seen as it is."""
    if isinstance(value, str):
        if _is_plain(value) or clean(value, len(value)) == value.replace("\r\n", "\n").replace("\r", "\n"):
            return value
        raise Unfit("its schema demands characters that cannot be seen")
    if isinstance(value, dict):
        for name in value:
            _exact(name)
    for inner in _inside(value):
        _exact(inner)
    return value


def _cleaned(value: JSON) -> JSON:
    if isinstance(value, str):
        return clean(value, max(len(value), 1))
    if isinstance(value, dict):
        return {clean(name, max(len(name), 1)): _cleaned(inner) for name, inner in value.items()}
    return [_cleaned(each) for each in value] if isinstance(value, list) else value
