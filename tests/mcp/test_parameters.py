"""The schema that models are shown: every provider takes it, and the server's own still judges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handwork.mcp.parameters import for_models

TEXT = {"type": "string"}


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "object", "properties": {}}, {"$schema": "x"}])
def test_an_empty_schema_is_an_object_without_properties(schema: dict[str, Any]) -> None:
    assert for_models(schema) == {"type": "object", "properties": {}}


def test_an_ordinary_schema_stays_as_it_is_but_for_its_dialect() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"anyOf": [TEXT, {"type": "null"}]}, "$schema": TEXT},
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"x": {}},
    }
    assert for_models({"$schema": "http://json-schema.org/draft-07/schema#", **schema}) == schema


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_alternatives_at_the_top_are_said_in_words_and_their_properties_are_shown(keyword: str) -> None:
    schema = {
        "type": "object",
        "description": "Find it.",
        "properties": {"n": {"type": "integer"}},
        keyword: [
            {"properties": {"id": TEXT, "x": TEXT}, "required": ["id"]},
            {"$ref": "#/$defs/by_name"},
            {"properties": {"x": {"type": "integer"}, "n": TEXT}},
        ],
        "$defs": {"by_name": {"properties": {"name": TEXT}}},
    }
    shown = for_models(schema)
    assert keyword not in shown
    assert shown["properties"] == {"id": TEXT, "x": {}, "name": TEXT, "n": {"type": "integer"}}
    assert shown["description"].startswith("Find it.\nThe arguments together must also fit this JSON Schema: {")
    assert json.dumps(keyword) in shown["description"]


@pytest.mark.parametrize("rule", [{"not": {"required": ["a"]}}, {"if": {}, "then": {}, "else": {}}, {"enum": [{}]}])
def test_other_rules_that_providers_refuse_at_the_top_are_said_in_words(rule: dict[str, Any]) -> None:
    shown = for_models({"type": "object", "properties": {"a": TEXT}, **rule})
    assert set(shown) == {"type", "properties", "description"}
    assert all(json.dumps(key) in shown["description"] for key in rule)


def test_a_reference_at_the_top_is_followed() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"x": TEXT}, "required": ["x"]}}}
    shown = for_models(schema)
    assert "$ref" not in shown
    assert shown["properties"] == {"x": TEXT}
    assert shown["required"] == ["x"]


def test_a_schema_that_points_at_itself_ends() -> None:
    assert for_models({"$ref": "#"})["type"] == "object"
    assert for_models({"allOf": [{"$ref": "#"}]})["type"] == "object"


@pytest.mark.parametrize("rule", [{"anyOf": 5}, {"anyOf": [5, None]}, {"allOf": {}}, {"oneOf": [{"properties": 3}]}])
def test_alternatives_without_sense_do_no_harm(rule: dict[str, Any]) -> None:
    assert for_models({"type": "object", **rule})["properties"] == {}


def test_the_words_are_bounded() -> None:
    shown = for_models({"anyOf": [{"properties": {f"p{number}": TEXT}} for number in range(1000)]})
    assert len(shown["description"]) < 2200
