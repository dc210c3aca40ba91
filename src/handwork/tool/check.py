"""Arguments against a tool's JSON Schema: an error names the place, what was expected and what was given."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema, from_json, to_json

from handwork.errors import ArgumentsError
from handwork.schema import JSON
from handwork.tool.effort import TooMuch, bounded, counted
from handwork.tool.rules import fits, properties_of, types_of
from handwork.tool.wording import given, short, shown, spot

_SHOWN, _LOOKED_AT = 3, 20
_COMPARED, _LONGEST_NAME = 200, 200
"""How many known names a wrong one is compared with, and how long it may be: comparing takes the product of both lengths."""
_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "text that matches {}",
    "const": "{}",
}


def validate(arguments: Mapping[str, JSON], schema: Mapping[str, JSON]) -> None:
    """Raise ArgumentsError("schema") unless the arguments fit the schema (JSON Schema, Draft 2020-12 unless it says another).

    The text names at most three problems. Nothing is ever fetched: what a reference to elsewhere would demand, a pattern
    that has no linear-time form, a schema that is itself broken, and what would take too long are left to the tool to judge.
    """
    if fits(arguments, schema, schema):
        return
    validator = _validator(to_json(schema, fallback=str))
    if validator is None:
        return
    texts = dict[str, None]()
    with suppress(RecursionError, TooMuch), bounded():  # the first: the schema refers to itself without end
        for error in islice(validator.iter_errors(arguments), _LOOKED_AT):
            texts[_explained(error, schema)] = None
    if texts:
        more = len(texts) - _SHOWN
        raise ArgumentsError("schema", "; ".join([*texts][:_SHOWN]) + (f"; and {more} more" if more > 0 else ""))


def unknown_parameter(name: str, schema: Mapping[str, JSON]) -> str:
    """What to tell a model that used a name which the schema does not have."""
    known = list(properties_of(schema))
    if not known:
        return f"unknown parameter '{short(name)}': there are none here"
    near = difflib.get_close_matches(name, known[:_COMPARED], 1) if len(name) <= _LONGEST_NAME else []
    hint = f"did you mean '{near[0]}'?" if near else f"expected only {', '.join(map(repr, known[:10]))}"
    return f"unknown parameter '{short(name)}' ({hint})"


def _explained(error: Any, root: Mapping[str, JSON]) -> str:
    error = _best(error)
    keyword, rule, value, schema = error.validator, error.validator_value, error.instance, error.schema
    path = list(error.absolute_path)
    inside = f" in {spot(path)}" if path else ""
    if keyword == "required":
        return _listed([name for name in rule if name not in value], lambda name: _missing(name, schema, root)) + inside
    if keyword == "additionalProperties":
        return _listed(_extra(value, schema), lambda name: unknown_parameter(name, schema)) + inside
    if keyword in ("anyOf", "oneOf") and (types := types_of(schema, root)):
        expected = " or ".join(sorted(types))
    elif keyword == "type":
        expected = " or ".join([rule] if isinstance(rule, str) else rule)
    elif keyword == "enum":
        expected = f"one of {', '.join(map(shown, rule[:10]))}" + (" …" if len(rule) > 10 else "")
    elif keyword is None:
        expected = "nothing here"
    else:
        expected = _BOUNDS.get(keyword, f"{keyword} {{}}").replace("{}", shown(rule))
    return f"{spot(path)}: expected {expected}, given {given(value)}"


def _listed(names: list[str], explain: Callable[[str], str]) -> str:
    """The first few explained: to find the nearest name of each of thousands takes longer than anything they could be worth."""
    more = len(names) - _SHOWN
    return ", ".join(map(explain, names[:_SHOWN])) + (f" and {more} more" if more > 0 else "")


def _best(error: Any) -> Any:
    """Of alternatives that all failed: the problem of the one that came closest, unless none of the types fits."""
    from jsonschema.exceptions import best_match

    if error.validator not in ("anyOf", "oneOf") or not error.context:
        return error
    inner = [one for one in error.context if not (one.validator == "type" and len(one.relative_path) == 0)]
    return best_match(inner) if inner else error


def _missing(name: str, schema: Mapping[str, JSON], root: Mapping[str, JSON]) -> str:
    types = sorted(types_of(properties_of(schema).get(name), root))
    return f"'{short(name)}' is missing" + (f" (expected {' or '.join(types)})" if types else "")


def _extra(value: Mapping[str, JSON], schema: Mapping[str, JSON]) -> list[str]:
    known, patterns = properties_of(schema), schema.get("patternProperties") or {}
    return [name for name in value if name not in known and not any(_matches(pattern, name) for pattern in patterns)]


@functools.lru_cache(maxsize=256)
def _validator(schema: bytes) -> Any:
    """The validator of a schema (a memo by its text: the same tool is called often), None if the schema is broken."""
    from jsonschema import Draft202012Validator, validators
    from jsonschema.exceptions import SchemaError as BrokenSchema
    from referencing import Registry

    parsed = from_json(schema)
    dialect = validators.validator_for(parsed, default=Draft202012Validator)
    try:
        dialect.check_schema(parsed)
    except (BrokenSchema, RecursionError):
        return None
    ours: dict[str, Callable[..., Iterator[Any]]] = {
        "additionalProperties": _check_additional,
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "uniqueItems": _check_unique,
    }
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if original := dialect.VALIDATORS.get(keyword):
            ours[keyword] = _only_local(original)
    # unevaluatedProperties would run foreign patterns too: the tool judges it
    ours |= {"unevaluatedProperties": _pass}
    extend: Any = validators.extend
    judges = {keyword: counted(judge) for keyword, judge in {**dialect.VALIDATORS, **ours}.items()}
    return extend(dialect, judges)(parsed, registry=Registry())


def _only_local(original: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """A reference keyword that passes over what is not in the schema itself."""
    from referencing.exceptions import Unresolvable

    def check(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
        try:
            yield from original(validator, rule, instance, schema) or ()
        except Unresolvable:
            return

    return check


def _pass(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
    return iter(())


def _check_pattern(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not _matches(rule, instance):
        yield ValidationError("pattern")


def _check_pattern_properties(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, inner in rule.items():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _check_unique(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """The library compares each object with every other one."""
    from jsonschema import ValidationError

    if rule and isinstance(instance, list) and len(set(map(_identity, instance))) < len(instance):
        yield ValidationError("uniqueItems")


def _identity(value: Any) -> Any:
    """What is equal for equal JSON alone: 1 is 1.0, and true is not 1."""
    if isinstance(value, dict):
        return frozenset((name, _identity(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(map(_identity, value))
    return (bool, value) if isinstance(value, bool) else value


def _check_additional(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    extra = _extra(instance, schema) if isinstance(instance, dict) else []
    if rule is False and extra:
        yield ValidationError("additionalProperties")
    elif isinstance(rule, dict):
        for name in extra:
            yield from validator.descend(instance[name], rule, path=name)


def _matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text, in linear time: a server's pattern must not hang us. Yes if there is no such form."""
    matcher = _matcher(pattern)
    return matcher is None or matcher.isinstance_python(text)


@functools.lru_cache(maxsize=256)
def _matcher(pattern: str) -> SchemaValidator | None:
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except (SchemaError, ValueError):
        return None
