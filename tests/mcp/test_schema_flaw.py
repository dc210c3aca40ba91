"""Schemas that servers write: what has the form of one is taken, in every dialect; nothing in them leads outside."""

from __future__ import annotations

import time
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from handwork.mcp.schema_flaw import flaw

SOUND: list[Any] = [
    {},
    {"type": "object", "properties": {"a": True, "b": {"type": ["string", "null"]}}, "required": []},
    {"anyOf": [{"minLength": 1}, False], "not": {}, "if": True, "then": {}, "else": False},
    {"items": {}, "prefixItems": [{}], "contains": True, "minContains": 0, "uniqueItems": True, "maxItems": 3.0},
    {
        "minimum": -1.5,
        "exclusiveMaximum": 2,
        "multipleOf": 0.1,
        "enum": [None, {"type": 5}],
        "const": {"$ref": "http://x"},
    },
    {"patternProperties": {"^x": {}}, "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"a": {}}},
    {"default": {"$ref": "http://x"}, "examples": [{"$ref": "#/nowhere"}], "x-anything": 5, "readOnly": True},
]
BROKEN: list[Any] = [
    {"type": "text"},
    {"type": 5},
    {"type": []},
    {"properties": []},
    {"properties": {"a": 5}},
    {"anyOf": {}},
    {"anyOf": [5]},
    {"minLength": -1},
    {"minLength": "1"},
    {"maxItems": 1.5},
    {"minimum": "3"},
    {"minimum": True},
    {"multipleOf": 0},
    {"required": "a"},
    {"required": [5]},
    {"enum": "a"},
    {"uniqueItems": 1},
    {"pattern": 5},
    {"$ref": 5},
    {"$defs": {"a": None}},
    {"not": []},
    {"dependentRequired": {"a": "b"}},
    {"properties": {"a": {"items": {"type": "text"}}}},
]


@pytest.mark.parametrize("schema", SOUND)
def test_what_the_metaschema_takes_is_taken(schema: Any) -> None:
    Draft202012Validator.check_schema(schema)
    assert flaw(schema) == ""


@pytest.mark.parametrize("schema", BROKEN)
def test_what_the_metaschema_refuses_is_a_flaw(schema: Any) -> None:
    with pytest.raises(SchemaError):
        Draft202012Validator.check_schema(schema)
    assert flaw(schema).startswith("its schema is no JSON Schema (at ")


@pytest.mark.parametrize(
    "schema",
    [
        {"minimum": 1, "exclusiveMinimum": True, "required": True},
        {"items": [{}, {}], "additionalItems": False},
        {
            "definitions": {"a": {}},
            "dependencies": {"a": ["b"], "b": {}},
            "properties": {"x": {"$ref": "#/definitions/a"}},
        },
    ],
)
def test_what_earlier_dialects_allow_is_taken(schema: Any) -> None:
    assert flaw(schema) == ""


@pytest.mark.parametrize(
    "reference",
    [
        "#",
        "#/$defs/a",
        "#/$defs/b~1c%20d",
        "#here",
        "#/allOf/1",
        "https://me.example/s",
        "https://me.example/s#/$defs/a",
    ],
)
def test_a_reference_into_the_schema_is_taken(reference: str) -> None:
    schema = {
        "$id": "https://me.example/s",
        "$defs": {"a": {}, "b/c d": {"$anchor": "here"}},
        "allOf": [{}, {"properties": {"x": {"$ref": reference}}}],
    }
    assert flaw(schema) == ""


@pytest.mark.parametrize(
    "reference",
    [
        "http://127.0.0.1:9/x",
        "file:///etc/passwd",
        "//evil.example/x",
        "other.json",
        "https://json-schema.org/draft/2020-12/schema",
        "https://me.example/s2#/$defs/a",
        "#/$defs/none",
        "#/$defs/a/",
        "#/allOf/9",
        "#/allOf/x",
        "#/allOf/²",
        "#/allOf/" + "9" * 5000,
        "#/type",
        "#nowhere",
        "#" + "/a" * 50_000,
    ],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_reference_to_elsewhere_or_to_nowhere_is_a_flaw(reference: str, keyword: str) -> None:
    schema = {
        "$id": "https://me.example/s",
        "type": "object",
        "$defs": {"a": {}},
        "allOf": [{"not": {keyword: reference}}],
    }
    assert "points to what is not in it" in flaw(schema)


def test_names_of_properties_are_no_keywords() -> None:
    schema = {
        "properties": {name: {"type": "string"} for name in ("$ref", "type", "required", "pattern", "$anchor", "enum")}
    }
    assert flaw(schema) == ""


def test_a_large_schema_is_judged_in_no_time() -> None:
    schema = {
        "properties": {f"p{number}": {"type": "string", "$ref": "#/$defs/a"} for number in range(5000)},
        "$defs": {"a": {}},
    }
    began = time.process_time()
    assert flaw(schema) == ""
    assert time.process_time() - began < 1.0
