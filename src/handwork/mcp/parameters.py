"""A tool's JSON Schema as models are shown it: providers refuse some forms, and one refused tool fails every request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from handwork.mcp.cleaning import clean
from handwork.schema import JSON
from handwork.tool.rules import properties_of, resolve

_REFUSED = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else", "dependentSchemas")
"""At the top of a tool's parameters OpenAI and Anthropic take none of these."""
_LONGEST = 2_000


def for_models(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """The same schema in the form that every provider takes: an object with properties, and nothing but that at its top.

    What cannot stand at the top is said in words in its place, and the arguments are judged by the whole schema all the same.
    """
    made: dict[str, Any] = {key: value for key, value in schema.items() if key != "$schema"}
    if "$ref" in made and (target := resolve({"$ref": made["$ref"]}, schema)) is not None:
        made = {**target, **{key: value for key, value in made.items() if key != "$ref"}}
    rules = {key: made.pop(key) for key in _REFUSED if key in made}
    properties = {**_of_alternatives(rules, schema), **properties_of(made)}
    made |= {"type": "object", "properties": properties}
    if rules:
        said = clean(json.dumps(rules, ensure_ascii=False), _LONGEST)
        words = f"The arguments together must also fit this JSON Schema: {said}"
        made["description"] = "\n".join(filter(None, (made.get("description"), words)))
    return made


def _of_alternatives(rules: Mapping[str, JSON], root: Mapping[str, JSON]) -> dict[str, JSON]:
    """The properties that alternatives at the top name; one that they describe differently may be anything."""
    found: dict[str, JSON] = {}
    for keyword in ("allOf", "anyOf", "oneOf"):
        branches = rules.get(keyword)
        for branch in branches if isinstance(branches, list) else ():
            for name, rule in properties_of(resolve(branch, root) or {}).items():
                found[name] = rule if found.get(name, rule) == rule else {}
    return found
