from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from handwork.tool.arguments import ArgumentsError, parse, prepare, validate
from handwork.tool.base import Tool, ToolContext
from handwork.tool.rules import fits, types_of

OPEN: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}
EDITOR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "command": {"type": "string", "enum": ["view", "create"]},
        "view_range": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}},
        "timeout": {"type": "integer", "minimum": 1},
    },
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {
        "Edit": {
            "type": "object",
            "properties": {"old": {"type": "string"}, "new": {"type": "string"}, "more": {"type": "object"}},
            "required": ["old"],
        }
    },
}


def _refusal(act: Callable[[], object]) -> str:
    """What the ArgumentsError says, '' if there is none."""
    try:
        act()
    except ArgumentsError as error:
        return str(error)
    return ""


# ---- parse: what is accepted


@pytest.mark.parametrize("raw", ["", "  \n", "{}", " {} ", '""', '"{}"', "\ufeff{}"])
def test_empty_arguments_are_an_empty_object(raw: str) -> None:
    assert parse(raw, EDITOR) == {}


def test_null_means_no_arguments_where_none_are_required() -> None:
    assert parse("null", OPEN) == {}
    with pytest.raises(ArgumentsError):
        parse("null", EDITOR)


@pytest.mark.parametrize(
    "value",
    [
        {"path": "/a", "view_range": [1, -1]},
        {"path": "zürich 東京 😀 \x00 \\ud800"},
        {"path": "NaN", "timeout": 10**300},
        {"path": "[1, 2"},
    ],
)
def test_plain_arguments_come_out_as_they_went_in(value: dict[str, Any]) -> None:
    assert parse(json.dumps(value), EDITOR) == value
    assert parse(json.dumps(value, ensure_ascii=False), EDITOR) == value


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(json.dumps({"path": "/a"})),
        '{"arguments": {"path": "/a"}}',
        '{"parameters": {"path": "/a"}}',
        '{"input": {"path": "/a"}}',
        '{"editor": {"path": "/a"}}',
        json.dumps({"arguments": json.dumps({"path": "/a"})}),
        json.dumps(json.dumps({"arguments": {"path": "/a"}})),
    ],
)
def test_double_encoding_and_wrapping_of_one_key_are_undone(raw: str) -> None:
    assert parse(raw, EDITOR, "editor") == {"path": "/a"}


def test_a_wrapper_that_could_be_meant_stays() -> None:
    own = {"type": "object", "properties": {"input": {"type": "object"}}}
    assert parse('{"input": {"a": 1}}', own) == {"input": {"a": 1}}
    assert parse('{"input": {"a": 1}}', OPEN | {"additionalProperties": True}) == {"input": {"a": 1}}
    assert parse('{"input": {"a": 1}}', {"type": "object"}) == {"input": {"a": 1}}
    assert parse('{"input": {"a": 1}, "n": 2}', OPEN) == {"input": {"a": 1}, "n": 2}
    assert parse('{"arguments": "text"}', OPEN) == {"arguments": "text"}
    assert parse('{"other": {"n": 1}}', OPEN, "editor") == {"other": {"n": 1}}
    assert parse('{"arguments": {}}', {"type": "object"}) == {}


def test_values_encoded_twice_are_opened_where_the_schema_wants_an_object_or_array() -> None:
    edits = [{"old": "a", "more": {"x": 1}}]
    assert parse(json.dumps({"edits": json.dumps(edits)}), EDITOR) == {"edits": edits}
    assert parse(json.dumps({"edits": [json.dumps(edits[0])]}), EDITOR) == {"edits": edits}
    inner = [{"old": "a", "more": json.dumps({"x": 1})}]
    assert parse(json.dumps({"edits": json.dumps(inner)}), EDITOR) == {"edits": edits}
    assert parse('{"view_range": "[1, 5]"}', EDITOR) == {"view_range": [1, 5]}


def test_strings_stay_strings_where_the_schema_wants_or_allows_one() -> None:
    assert parse('{"path": "[1, 5]"}', EDITOR) == {"path": "[1, 5]"}
    either = {"type": "object", "properties": {"it": {"type": ["string", "array"]}, "any": {}}}
    assert parse('{"it": "[1]", "any": "[1]"}', either) == {"it": "[1]", "any": "[1]"}
    assert parse('{"view_range": "{}", "edits": "[NaN]"}', EDITOR) == {"view_range": "{}", "edits": "[NaN]"}
    assert parse('{"timeout": "5"}', EDITOR) == {"timeout": "5"}


# ---- parse: what is refused


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ('{"path": ', "expecting value at the end of the text"),
        ('{"path": "a', "the closing quote is missing"),
        ('{"path": "/a"', "',' delimiter"),
        ("{'path': 1}", "names and strings stand in double quotes"),
        ('{"path": "/a",}', "double quotes"),
        ('{"path": "a\nb"}', "written \\n"),
        ('{"path": "a\\d"}', "a backslash inside a string"),
        ('{\n"path": x}', "line 2 column 9"),
        ("path=/a", "expecting value at line 1 column 1"),
        ('```json\n{"path": "/a"}\n```', "expecting value"),
        ('{"path": "/a"} and more', "nothing after it"),
        ('{"path": "/a"}{"path": "/b"}', "nothing after it"),
        ('{"timeout": NaN}', "NaN"),
        ('{"timeout": Infinity}', "Infinity"),
        ('{"timeout": -Infinity}', "-Infinity"),
        ('{"timeout": 1e999}', "too large"),
        ('{"timeout": -1e999}', "too large"),
        ('{"path": "a", "path": "b"}', 'the name "path" is given twice'),
        ('{"edits": [{"old": "a", "old": "b"}]}', 'the name "old" is given twice'),
        ('{"path": "\\ud800"}', "'path' holds half of a surrogate pair"),
        ('{"path": "\ud800"}', "'path' holds half of a surrogate pair"),
        ('{"\\udfff": 1}', "half of a surrogate pair"),
        ('{"edits": [{"old": "\\ude00\\ud83d"}]}', "'edits[0].old' holds half"),
        ('{"a":' * 3000 + "1" + "}" * 3000, "nested too deeply"),
        ("[" * 3000, "nested too deeply"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"a":' + "[" * 120 + "]" * 120 + "}", "nested too deeply"),
        ('{"a":' + "9" * 5000 + "}", "4,300 digits"),
        ('{"a":-' + "9" * 5000 + "}", "4,300 digits"),
        ("[]", "expected an object of arguments, given array []"),
        ("5", "given integer 5"),
        ("true", "given boolean true"),
        ('"text"', "expecting value"),
        ('"\\"text\\""', 'given string "text"'),
        (json.dumps('{"a": NaN}'), "NaN"),
        (json.dumps('{"a": 1, "a": 2}'), "twice"),
    ],
)
def test_what_is_no_object_of_json_is_refused_with_the_place_and_what_was_expected(raw: str, says: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        parse(raw, EDITOR)
    assert caught.value.kind == "json"
    assert str(caught.value).startswith("Invalid JSON format: ")
    assert says in str(caught.value)
    assert len(str(caught.value)) < 400
    str(caught.value).encode()


def test_a_hundred_levels_are_read() -> None:
    deep = '{"a":' + "[" * 99 + "]" * 99 + "}"
    assert parse(deep, OPEN | {"additionalProperties": True})


def test_brackets_inside_text_are_no_nesting() -> None:
    assert parse(json.dumps({"text": "[" * 5000}), OPEN) == {"text": "[" * 5000}


@given(st.text() | st.text(alphabet='{}[]",:\\u0d8 1eN'))
@settings(max_examples=200, deadline=None)
def test_any_text_gives_an_object_or_an_arguments_error(raw: str) -> None:
    said = _refusal(lambda: parse(raw, EDITOR, "editor"))
    assert len(said) < 400


# ---- validate


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "'path' is missing (expected string)"),
        ({"path": 5}, "'path': expected string, given integer 5"),
        ({"path": None}, "'path': expected string, given null"),
        ({"path": True}, "'path': expected string, given boolean true"),
        ({"path": {"a": 1}}, "'path': expected string, given object {\"a\": 1}"),
        ({"path": "a", "timeout": "5"}, "'timeout': expected integer, given string \"5\""),
        ({"path": "a", "timeout": 1.5}, "'timeout': expected integer, given number 1.5"),
        ({"path": "a", "timeout": True}, "'timeout': expected integer, given boolean true"),
        ({"path": "a", "timeout": 0}, "'timeout': expected at least 1, given integer 0"),
        ({"path": "a", "command": "veiw"}, '\'command\': expected one of "view", "create", given string "veiw"'),
        ({"path": "a", "view_range": "1"}, "'view_range': expected array or null, given string \"1\""),
        ({"path": "a", "view_range": [1, "x"]}, "'view_range[1]': expected integer, given string \"x\""),
        ({"path": "a", "edits": [{"new": "x"}]}, "'old' is missing (expected string) in 'edits[0]'"),
        ({"path": "a", "edits": [{"old": 1}]}, "'edits[0].old': expected string, given integer 1"),
        ({"path": "a", "view_range": [True]}, "'view_range[0]': expected integer, given boolean true"),
        ({"pth": "a"}, "unknown parameter 'pth' (did you mean 'path'?)"),
        ({"path": "a", "zzz": 1}, "unknown parameter 'zzz' (expected only 'path', 'command',"),
    ],
)
def test_a_misfit_is_told_with_field_expected_and_given(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        validate(arguments, EDITOR)
    assert caught.value.kind == "schema"
    assert says in str(caught.value)


def test_true_is_not_one_and_one_is_not_true() -> None:
    for allowed, sent in ((1, True), (True, 1), (0, False), (False, 0)):
        for rule in ({"enum": [allowed]}, {"const": allowed}):
            with pytest.raises(ArgumentsError, match="'a': expected"):
                validate({"a": sent}, {"properties": {"a": rule}})


def test_a_misfit_is_told_briefly_however_large_it_is() -> None:
    with pytest.raises(ArgumentsError) as caught:
        validate({"path": ["x" * 1_000_000], "edits": [1] * 10_000, "y" * 10_000: 1}, EDITOR)
    assert len(str(caught.value)) < 700
    assert "; and " in str(caught.value)


@pytest.mark.parametrize(
    "rule",
    [
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "other.json#/x"},
        {"$dynamicRef": "http://127.0.0.1:9/x"},
    ],
)
def test_a_reference_to_elsewhere_is_never_followed(rule: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    schema = {"type": "object", "properties": {"a": rule, "n": {"type": "integer"}}}
    validate({"a": True, "n": 1}, schema)
    with pytest.raises(ArgumentsError, match="'n': expected integer"):
        validate({"a": True, "n": "x"}, schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "objekt"},
        {"type": "object", "properties": {"a": {"type": 5}}},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"type": "object", "required": 5},
        {"type": "object", "properties": {"a": {"enum": 5}}},
    ],
)
def test_a_broken_schema_is_left_to_the_tool_to_judge(schema: dict[str, Any]) -> None:
    validate({"a": "x"}, schema)
    assert parse('{"a": "x"}', schema) == {"a": "x"}


def test_a_pattern_of_a_server_cannot_hang_us() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(x+x+)+y$"}},
        "patternProperties": {"^(z+z+)+y$": {"type": "integer"}},
        "additionalProperties": False,
    }
    begun = time.monotonic()
    with pytest.raises(ArgumentsError, match=r"text that matches .*unknown parameter"):
        validate({"a": "x" * 5000, "z" * 5000: 1}, schema)
    assert time.monotonic() - begun < 10
    validate({"a": "xxy", "zzy": 1}, schema)


def test_a_schema_of_an_older_draft_is_read_as_such() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
    }
    validate({"pair": ["a", 1]}, schema)
    with pytest.raises(ArgumentsError, match=r"'pair\[1\]': expected integer"):
        validate({"pair": ["a", "b"]}, schema)


def test_of_alternatives_the_nearest_is_explained() -> None:
    point = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    schema = {"type": "object", "properties": {"at": {"anyOf": [{"type": "string"}, point]}}}
    with pytest.raises(ArgumentsError, match=r"'at\.x': expected number, given string"):
        validate({"at": {"x": "far"}}, schema)
    with pytest.raises(ArgumentsError, match="'at': expected object or string, given integer 5"):
        validate({"at": 5}, schema)


_rules = st.recursive(
    st.sampled_from(
        [
            {},
            True,
            False,
            {"type": "string", "minLength": 2},
            {"type": "integer", "minimum": 1, "exclusiveMaximum": 4},
            {"type": ["number", "null"]},
            {"enum": [1, "a", None, True]},
            {"const": 0},
            {"type": "boolean", "title": "t"},
            {"$ref": "#/$defs/it"},
            {"multipleOf": 2},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda rule: {"type": "array", "items": rule, "maxItems": 2}, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(lambda a, b: {"allOf": [a, b]}, inner, inner),
        st.builds(
            lambda a, b, more: {"properties": {"a": a, "b": b}, "required": ["a"], "additionalProperties": more},
            inner,
            inner,
            inner,
        ),
    ),
    max_leaves=5,
)
_values = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 2, 3.0, 1.5, "a", "ab", 5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)


@given(_rules, _rules, _values)
@settings(max_examples=200, deadline=None)
def test_the_quick_yes_never_says_yes_where_the_full_check_says_no(rule: Any, definition: Any, value: Any) -> None:
    if isinstance(rule, bool):
        rule = {"allOf": [rule]}
    schema = rule | {"$defs": {"it": definition}}
    if not fits(value, schema, schema):
        return
    with suppress(RecursionError):  # a definition that is its own alternative means nothing
        assert Draft202012Validator(schema).is_valid(value)


def _rule_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    words = (
        "type properties required additionalProperties items enum anyOf oneOf allOf $ref pattern patternProperties a"
    )
    return st.dictionaries(
        st.sampled_from([*words.split(), "minimum", "minLength", "prefixItems", "not", "$defs"]), inner
    )


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from(["string", "object", "array", "#", "#/$defs/a", "a", "("]),
    lambda inner: st.lists(inner, max_size=3) | _rule_of(inner),
    max_leaves=6,
)


@given(
    _rule_of(_json), st.dictionaries(st.sampled_from(["a", "b"]), _values | st.sampled_from(["{}", "[1]"]), max_size=2)
)
@settings(max_examples=200, deadline=None)
def test_no_schema_however_broken_raises_anything_but_an_arguments_error(
    schema: Any, arguments: dict[str, Any]
) -> None:
    assert _refusal(lambda: validate(parse(json.dumps(arguments), schema), schema)).isprintable()


# ---- prepare: what execute itself takes


class _Loose(Tool):
    name = "loose"
    parameters = OPEN

    async def execute(self, text: str, n: int = 1) -> str:
        return text * n


class _Wide(Tool):
    name = "wide"
    parameters = OPEN

    async def execute(self, context: ToolContext, **kwargs: Any) -> str:
        return str(kwargs)


def test_names_that_execute_does_not_take_are_an_error_before_the_call() -> None:
    assert prepare(_Loose(), '{"text": "a"}') == {"text": "a"}
    with pytest.raises(ArgumentsError, match="unknown parameter 'txet'") as caught:
        prepare(_Loose(), '{"text": "a", "txet": "b"}')
    assert caught.value.kind == "schema"
    assert prepare(_Wide(), '{"other": 1}') == {"other": 1}


def test_names_that_execute_needs_are_an_error_before_the_call_even_if_the_schema_forgot_them() -> None:
    with pytest.raises(ArgumentsError, match="missing: 'text'"):
        prepare(_Loose(), '{"n": 2}')


@pytest.mark.parametrize("name", ["context", "self"])
def test_a_model_cannot_send_what_we_pass_ourselves(name: str) -> None:
    with pytest.raises(ArgumentsError, match=f"unknown parameter '{name}'"):
        prepare(_Wide(), json.dumps({name: 1}))


# ---- hostile sizes: nothing takes the square of them


def _quickly(work: Any) -> str:
    begun = time.process_time()
    said = _refusal(work)
    assert time.process_time() - begun < 3
    assert len(said) < 1000
    return said


def test_rules_that_lead_to_each_other_in_more_ways_than_there_is_time_are_left_to_the_tool() -> None:
    twice = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
    chain = {"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": {**twice, "a40": {"maxLength": 1}}}
    knot = {"properties": {"x": {"anyOf": [{"$ref": "#/properties/x"}] * 100}}}
    tree = {"properties": {"x": {"anyOf": [{"properties": {"y": {"$ref": "#/properties/x"}}}] * 100}}}
    deep = '{"x": ' + '{"y": ' * 20 + '"end"' + "}" * 21
    many = {"properties": {"x": {"items": {"enum": [*range(9000)]}}}}
    for schema, raw in (
        (chain, '{"x": "a"}'),
        (knot, '{"x": [null]}'),
        (tree, deep),
        (many, f'{{"x": {[8999] * 9000}}}'),
    ):
        assert not _quickly(lambda schema=schema, raw=raw: validate(parse(raw, schema), schema))


def test_what_was_found_before_it_became_too_much_is_told() -> None:
    twice = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
    schema = {"properties": {"n": {"type": "integer"}, "x": {"$ref": "#/$defs/a0"}}, "$defs": {**twice, "a40": {}}}
    assert "'n': expected integer" in _quickly(lambda: validate({"n": "1", "x": 1}, schema))


def test_types_are_known_of_alternatives_that_refer_back_to_their_rule() -> None:
    knot = {"properties": {"x": {"anyOf": [{"$ref": "#/properties/x"}, {"type": "array"}, {"type": ["object"]}]}}}
    assert types_of({"$ref": "#/properties/x"}, knot) == {"array", "object"}
    assert parse('{"x": "[1]"}', knot) == {"x": [1]}


def test_one_repeated_name_among_forty_thousand_is_found_quickly() -> None:
    raw = "{" + ",".join(f'"k{n}": 1' for n in range(40_000)) + ', "k39999": 2}'
    assert "'k39999'" in _quickly(lambda: parse(raw, OPEN)).replace('"', "'")


def test_thousands_of_unknown_names_are_refused_quickly_and_briefly() -> None:
    closed = {"properties": {f"name_{n}": {} for n in range(300)}, "additionalProperties": False}
    assert "and 39997 more" in _quickly(lambda: validate({f"nam_{n}": 1 for n in range(40_000)}, closed))
    assert "unknown parameter" in _quickly(lambda: validate({"nam" * 1_000_000: 1}, closed))
    wanting = {"required": [f"name_{n}" for n in range(40_000)]}
    assert "and 39997 more" in _quickly(lambda: validate({}, wanting))


def test_thousands_of_objects_that_must_differ_are_compared_quickly() -> None:
    schema = {"properties": {"a": {"type": "array", "uniqueItems": True}}}
    assert not _quickly(lambda: validate({"a": [{"n": n} for n in range(40_000)]}, schema))
    assert "uniqueItems" in _quickly(lambda: validate({"a": [*({"n": n} for n in range(40_000)), {"n": 7}]}, schema))
    validate({"a": [1, True, "1", [1], [True], {"a": 1}, {"a": True}, 0, False, None]}, schema)
    for pair in ([1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1.0}], [[1], [1]], [None, None], [True, True]):
        with pytest.raises(ArgumentsError, match="uniqueItems"):
            validate({"a": pair}, schema)


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"path": "a", "command": None, "timeout": None, "edits": None}, {"path": "a"}),
        ({"path": "a", "view_range": None}, {"path": "a", "view_range": None}),
        ({"path": "a", "edits": [{"old": "x", "new": None}]}, {"path": "a", "edits": [{"old": "x"}]}),
        ({"arguments": {"path": "a", "timeout": None}}, {"path": "a"}),
    ],
)
def test_null_for_an_optional_argument_is_an_absent_one_unless_it_may_be_null(sent: Any, meant: Any) -> None:
    arguments = parse(json.dumps(sent), EDITOR)
    assert arguments == meant
    validate(arguments, EDITOR)


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        ({"path": None}, "'path': expected string, given null"),
        ({"path": "a", "edits": [{"old": None}]}, "expected string, given null"),
        ({"path": "a", "bogus": None}, "unknown parameter 'bogus'"),
    ],
)
def test_null_where_something_is_needed_or_nothing_is_known_is_still_an_error(sent: Any, problem: str) -> None:
    with pytest.raises(ArgumentsError, match=problem):
        validate(parse(json.dumps(sent), EDITOR), EDITOR)
