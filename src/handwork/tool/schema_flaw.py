"""Whether a JSON Schema that somebody else wrote can be used: it is one, and points to nothing outside of itself."""

from __future__ import annotations

from collections.abc import Iterable

from handwork.schema import JSON

_BROKEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What the libraries raise for a schema whose keywords have the wrong types."""


def flaw(schema: JSON, references: Iterable[str] = ()) -> str:
    """Why the schema cannot be used, as the end of a sentence; '' if it can.

    Nothing is fetched: a reference that leads out of the schema is a flaw, and so is one that leads to nowhere in it.

    Args:
        schema: not deeper than a recursive reader takes.
        references: the values of all `$ref` and `$dynamicRef` in it.
    """
    from jsonschema import Draft202012Validator, validators
    from jsonschema.exceptions import SchemaError

    try:
        validators.validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        where = ".".join(map(str, error.absolute_path))
        return f"its schema is no JSON Schema (at {where[:60] or 'its top'})"
    except _BROKEN as error:
        return f"its schema is no JSON Schema ({type(error).__name__})"
    wrong = next((each for each in references if not _leads_inside(schema, each)), None)
    return "" if wrong is None else f"its schema points to what is not in it ({wrong[:60]!r})"


def _leads_inside(schema: JSON, reference: str) -> bool:
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    try:
        resource = DRAFT202012.create_resource(schema)
        own = resource.id() or ""
        registry: Registry[JSON] = Registry().with_resource(own, resource)
        registry.resolver(own).lookup(reference)
    except (Unresolvable, *_BROKEN):
        return False
    return True
