"""Reading a JSON Schema without a validator: what it points to, which types it allows, and what surely fits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from handwork.schema import JSON

Rule = Mapping[str, JSON]
_HOPS = 10
"""How many references and alternatives are followed in one place, so that a schema that points at itself ends."""
_CHOICES = 200
"""Alternatives of one place that are looked at; of more nothing is said."""
_MOST = 50_000
"""Rules that are tried in all before there is no verdict: with a few that refer to each other, there can be more ways than time."""
_NOTES = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"}
    | {"$comment", "$schema", "$defs", "definitions"}
)
_KINDS = MappingProxyType(
    {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
        "object": (dict,),
        "array": (list,),
        "null": (type(None),),
    }
)


def resolve(rule: JSON, root: Rule) -> Rule | None:
    """The rule itself, or the one that its local `$ref` points to; None if it is no rule or points elsewhere."""
    for _ in range(_HOPS):
        if not isinstance(rule, Mapping):
            return None
        if not isinstance(pointer := rule.get("$ref"), str):
            return rule
        if pointer != "#" and not pointer.startswith("#/"):
            return None
        rule = root
        for part in pointer[2:].split("/") if len(pointer) > 1 else ():
            if not isinstance(rule, Mapping) or "$id" in rule:
                return None
            rule = rule.get(part.replace("~1", "/").replace("~0", "~"))
    return None


def properties_of(rule: Rule) -> Mapping[str, JSON]:
    """The properties that a rule names; empty if it names none, or is broken."""
    properties = rule.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def types_of(rule: JSON, root: Rule) -> frozenset[str]:
    """The JSON types that a rule allows, where it says so plainly; empty if it does not.

    Each rule is looked at once: alternatives that lead back to each other are as many as one likes, and their ways without number.
    """
    found, seen, waiting = set[str](), set[int](), [rule]
    while waiting:
        each = resolve(waiting.pop(), root)
        if each is None or len(seen) > _CHOICES:
            return frozenset()
        if id(each) in seen:
            continue
        seen.add(id(each))
        named, choices = each.get("type"), each.get("anyOf") or each.get("oneOf")
        names = [name for name in (named if isinstance(named, list) else [named]) if isinstance(name, str)]
        found.update(names)
        if names:
            continue
        if named is not None or not isinstance(choices, list) or len(choices) > _CHOICES:
            return frozenset()
        waiting += choices
    return frozenset(found)


def branch_for(value: JSON, rule: JSON, root: Rule) -> Rule | None:
    """The rule that describes this object or array: the resolved rule, or the first alternative that allows its type."""
    found = resolve(rule, root)
    choices = found and (found.get("anyOf") or found.get("oneOf"))
    if not isinstance(choices, list):
        return found
    kind = "object" if isinstance(value, dict) else "array"
    return next((resolve(choice, root) for choice in choices[:_CHOICES] if kind in types_of(choice, root)), None)


def fits(value: JSON, rule: JSON, root: Rule) -> bool:
    """Whether the value surely fits the rule. False is no verdict: an unusual keyword gives it as well as a fault.

    It spares ordinary calls the import and the work of a full validator, and is always at least as strict as one.
    """
    return _fits(value, rule, _Work(root))


@dataclass(slots=True)
class _Work:
    """One question of `fits`: the whole schema, and how much may still be tried."""

    root: Rule
    left: int = _MOST


def _fits(value: JSON, rule: JSON, work: _Work, hops: int = 0) -> bool:
    work.left -= 1
    if rule is True:
        return True
    if not isinstance(rule, Mapping) or work.left < 0:
        return False
    for keyword, want in rule.items():
        if keyword in _NOTES:
            continue
        test = _TESTS.get(keyword)
        if test is None or not test(value, want, rule, work, hops):
            return False
    return True


def _type(value: JSON, want: JSON, rule: Rule, work: _Work, hops: int) -> bool:
    kind = type(value)
    if isinstance(want, str):
        return kind in _KINDS.get(want, ())
    return isinstance(want, list) and any(isinstance(name, str) and kind in _KINDS.get(name, ()) for name in want)


def _properties(value: JSON, want: JSON, rule: Rule, work: _Work, hops: int) -> bool:
    if type(value) is not dict:
        return True
    return isinstance(want, Mapping) and all(
        _fits(item, want[name], work) for name, item in value.items() if name in want
    )


def _required(value: JSON, want: JSON, rule: Rule, work: _Work, hops: int) -> bool:
    return type(value) is not dict or (
        isinstance(want, list) and all(isinstance(name, str) and name in value for name in want)
    )


def _additional(value: JSON, want: JSON, rule: Rule, work: _Work, hops: int) -> bool:
    if type(value) is not dict or want is True:
        return True
    known = properties_of(rule)  # beside patternProperties there is no sure yes anyway
    return all(name in known or (want is not False and _fits(item, want, work)) for name, item in value.items())


def _items(value: JSON, want: JSON, rule: Rule, work: _Work, hops: int) -> bool:
    return type(value) is not list or ("prefixItems" not in rule and all(_fits(item, want, work) for item in value))


def _enum(value: JSON, want: JSON, rule: Rule, work: _Work, hops: int) -> bool:
    kind = type(value)
    if kind not in (str, int, bool, type(None)) or not isinstance(want, list):
        return False
    work.left -= len(want) // 16
    return any(type(choice) is kind and choice == value for choice in want)


def _const(value: JSON, want: JSON, rule: Rule, work: _Work, hops: int) -> bool:
    return _enum(value, [want], rule, work, hops)


def _any_of(value: JSON, want: JSON, rule: Rule, work: _Work, hops: int) -> bool:
    return hops < _HOPS and isinstance(want, list) and any(_fits(value, choice, work, hops + 1) for choice in want)


def _all_of(value: JSON, want: JSON, rule: Rule, work: _Work, hops: int) -> bool:
    return hops < _HOPS and isinstance(want, list) and all(_fits(value, part, work, hops + 1) for part in want)


def _ref(value: JSON, want: JSON, rule: Rule, work: _Work, hops: int) -> bool:
    return hops < _HOPS and _fits(value, resolve({"$ref": want}, work.root), work, hops + 1)


def _bound(
    kinds: tuple[type, ...], measure: Callable[[Any], Any], holds: Callable[[Any, Any], bool]
) -> Callable[[JSON, JSON, Rule, _Work, int], bool]:
    def test(value: JSON, want: JSON, rule: Rule, work: _Work, hops: int) -> bool:
        return type(value) not in kinds or (type(want) in (int, float) and holds(measure(value), want))

    return test


def _itself(value: Any) -> Any:
    return value


_TESTS: Mapping[str, Callable[[JSON, JSON, Rule, _Work, int], bool]] = MappingProxyType(
    {
        "type": _type,
        "properties": _properties,
        "required": _required,
        "additionalProperties": _additional,
        "items": _items,
        "enum": _enum,
        "const": _const,
        "anyOf": _any_of,
        "allOf": _all_of,
        "$ref": _ref,
        "minLength": _bound((str,), len, lambda size, want: size >= want),
        "maxLength": _bound((str,), len, lambda size, want: size <= want),
        "minItems": _bound((list,), len, lambda size, want: size >= want),
        "maxItems": _bound((list,), len, lambda size, want: size <= want),
        "minimum": _bound((int, float), _itself, lambda value, want: value >= want),
        "maximum": _bound((int, float), _itself, lambda value, want: value <= want),
        "exclusiveMinimum": _bound((int, float), _itself, lambda value, want: value > want),
        "exclusiveMaximum": _bound((int, float), _itself, lambda value, want: value < want),
    }
)
