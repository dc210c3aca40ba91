"""Whatever JSON a server sends: it is read, or left out, and nothing breaks."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from handwork.mcp.cleaning import Unfit, clean, clean_schema, one_line
from handwork.mcp.fields import Refusal, field_of
from handwork.mcp.mending import mend
from handwork.mcp.names import tool_names
from handwork.mcp.page import page_of
from handwork.mcp.parameters import for_models
from handwork.mcp.schema_flaw import flaw

_KEYWORDS = """
type properties required items anyOf oneOf allOf not enum const $ref $defs $id $anchor $schema pattern format default title
description minimum multipleOf dependentRequired prefixItems name inputSchema outputSchema annotations tools content messages
role resource uri text data mimeType arguments _meta enumNames minItems
"""
KEYWORDS = st.sampled_from(_KEYWORDS.split())
TEXTS = st.text(max_size=8) | st.sampled_from(
    ["object", "string", "array", "#", "#/$defs/a", "http://x", "text", "image"]
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | st.characters()
VALUES: Any = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYWORDS | TEXTS, inner, max_size=5),
    max_leaves=25,
)
OBJECTS: Any = st.dictionaries(KEYWORDS, VALUES, max_size=6)
HIDDEN = set("\x1b\x07\x00\x9b\u202e\u2066\U000e0041")


@given(OBJECTS)
def test_any_schema_is_used_cleaned_or_left_out(schema: Any) -> None:
    try:
        cleaned = clean_schema(schema)
    except Unfit:
        return
    assert clean_schema(cleaned) == cleaned
    if not flaw(cleaned):
        shown = for_models(cleaned)
        assert shown["type"] == "object"
        assert not HIDDEN & set(json.dumps(shown, ensure_ascii=False))


@given(OBJECTS)
def test_any_result_is_mended_once_and_for_all(result: Any) -> None:
    before = json.dumps(result, sort_keys=True)
    mended = mend(result)
    assert json.dumps(result, sort_keys=True) == before
    again = mend(mended)
    assert {**again, "_meta": None} == {**mended, "_meta": None}


@given(st.text())
def test_any_text_is_clean_afterwards(text: str) -> None:
    assert not HIDDEN & set(clean(text))
    assert clean(clean(text)) == clean(text)
    assert one_line(text).isprintable()


@given(st.text(), st.lists(st.text(), unique=True, max_size=8), st.lists(st.text(), max_size=4))
def test_any_names_lead_to_names_of_their_own(server: str, tools: list[str], servers: list[str]) -> None:
    names = tool_names(server, tools, servers=servers)
    assert len(set(names.values())) == len(tools)
    assert all(len(name) <= 64 and name.isascii() for name in names.values())


@given(st.text() | st.from_regex(r"https?://[\w.@:\[\]%-]{1,20}(/.*)?"))
def test_any_address_is_a_page_with_a_host_of_plain_letters_or_none(address: str) -> None:
    page = page_of(address)
    if page is not None:
        assert page.host.isascii()
        assert page.described().replace("\n", "").isprintable()


@settings(deadline=None)  # the first one imports the validator
@given(st.text(max_size=10), VALUES, st.text(max_size=20))
def test_any_field_can_be_described_and_answered(name: str, rule: Any, answer: str) -> None:
    field = field_of(name, rule, required=True)
    assert not HIDDEN & set(field.described())
    try:
        json.dumps(field.value(answer.strip()))
    except Refusal:
        return
