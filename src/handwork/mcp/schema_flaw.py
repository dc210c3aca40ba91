"""Whether a JSON Schema that a server wrote can be used: it has the form of one, and points to nothing outside of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from urllib.parse import unquote

from handwork.mcp.cleaning import subschemas
from handwork.schema import JSON

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


def flaw(schema: JSON) -> str:
    """Why the schema (not deeper than a recursive reader takes) cannot be used, as the end of a sentence; '' if it can.

    What the dialects from draft 4 on allow is allowed, and keywords that none of them knows are passed over. Nothing is fetched: a
    reference that leads out of the schema is a flaw, and so is one that leads to nowhere in it. The metaschema itself would take
    ten milliseconds a tool to say the same.
    """
    anchors: set[str] = set()
    references: list[str] = []
    for rule in subschemas(schema):
        for keyword, value in rule.items():
            test = _FORMS.get(keyword)
            if test is not None and not test(value):
                return f"its schema is no JSON Schema (at {keyword})"
            if keyword in ("$ref", "$dynamicRef"):
                references.append(value)
            elif keyword in ("$anchor", "$dynamicAnchor"):
                anchors.add(value)
    own = str(schema.get("$id", "")).partition("#")[0]
    for reference in dict.fromkeys(references):
        address, _, fragment = reference.partition("#")
        if address not in ("", own) or not (fragment in anchors or _leads_to_a_rule(schema, unquote(fragment))):
            return f"its schema points to what is not in it ({reference[:60]!r})"
    return ""


def _leads_to_a_rule(schema: JSON, pointer: str) -> bool:
    """Whether a JSON pointer (RFC 6901) leads from the top of a schema to one in it."""
    if pointer and not pointer.startswith("/"):
        return False
    place = schema
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict) and key in place:
            place = place[key]
        elif isinstance(place, list) and key.isascii() and key.isdigit() and len(key) < 6 and int(key) < len(place):
            place = place[int(key)]
        else:
            return False
    return _is_rule(place)


def _is_rule(value: JSON) -> bool:
    return isinstance(value, (dict, bool))


def _are_rules(value: JSON) -> bool:
    return isinstance(value, list) and all(map(_is_rule, value))


def _are_texts(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_size(value: JSON) -> bool:
    return (type(value) is int or (type(value) is float and value.is_integer())) and value >= 0


def _is_number(value: JSON) -> bool:
    return type(value) in (int, float)


def _is_type(value: JSON) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)


def _of_each(test: Callable[[JSON], bool]) -> Callable[[JSON], bool]:
    return lambda value: isinstance(value, dict) and all(map(test, value.values()))


def _a(kind: type) -> Callable[[JSON], bool]:
    return lambda value: isinstance(value, kind)


def _forms() -> Iterator[tuple[str, Callable[[JSON], bool]]]:
    for names, test in (
        ("not if then else contains additionalProperties additionalItems propertyNames", _is_rule),
        ("unevaluatedItems unevaluatedProperties contentSchema", _is_rule),
        ("allOf anyOf oneOf prefixItems", _are_rules),
        ("items", lambda value: _is_rule(value) or _are_rules(value)),
        ("properties patternProperties $defs definitions dependentSchemas", _of_each(_is_rule)),
        ("dependentRequired", _of_each(_are_texts)),
        ("dependencies", _of_each(lambda value: _is_rule(value) or _are_texts(value))),
        ("minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains", _is_size),
        ("minimum maximum", _is_number),
        ("exclusiveMinimum exclusiveMaximum", lambda value: isinstance(value, bool) or _is_number(value)),
        ("multipleOf", lambda value: _is_number(value) and value > 0),
        ("type", _is_type),
        ("required", lambda value: isinstance(value, bool) or _are_texts(value)),
        ("enum", _a(list)),
        ("uniqueItems", _a(bool)),
        ("pattern format title description $comment $id $ref $dynamicRef $anchor $dynamicAnchor $schema", _a(str)),
    ):
        for name in names.split():
            yield name, test


_FORMS: Mapping[str, Callable[[JSON], bool]] = MappingProxyType(dict(_forms()))
