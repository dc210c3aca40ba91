"""Calls that a model wrote as text: which texts are one, and which only look like it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handwork.llm.written.calls import may_be_written, with_written_calls
from handwork.schema import Reply, Request, ToolCall, ToolChoice


def function(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TEXT = {"type": "string"}
TOOLS = (
    function("bash", command=TEXT, timeout={"type": "integer"}),
    function(
        "edit", path=TEXT, text={"anyOf": [TEXT, {"type": "null"}]}, lines={"type": "array"}, deep={"type": "object"}
    ),
    function("terminate", status=TEXT),
    {"type": "function", "function": {"name": "free"}},
)


def read(text: str, **fields: Any) -> Reply | None:
    request = Request(messages=[], tools=fields.pop("tools", TOOLS), tool_choice=fields.pop("choice", ToolChoice.AUTO))
    return with_written_calls(Reply(content=text, **fields), request)


def calls(text: str) -> list[tuple[str, Any]]:
    reply = read(text)
    assert reply is not None
    assert reply.content is None
    assert reply.finish_reason == "tool_calls"
    return [(call.function.name, json.loads(call.function.arguments)) for call in reply.tool_calls]


LS = ("bash", {"command": "ls"})
PWD = ("bash", {"command": "pwd"})
JSON_LS = '{"name": "bash", "arguments": {"command": "ls"}}'
JSON_PWD = '{"name": "bash", "parameters": {"command": "pwd"}}'

FORMS = {
    "bare": (JSON_LS, [LS]),
    "space around": (f"\n\n  {JSON_LS}\n", [LS]),
    "parameters": (JSON_PWD, [PWD]),
    "tool": ('{"tool": "bash", "args": {"command": "ls"}}', [LS]),
    "tool_name, tool_input": ('{"tool_name": "bash", "tool_input": {"command": "ls"}}', [LS]),
    "order": ('{"arguments": {"command": "ls"}, "name": "bash"}', [LS]),
    "with type and id": ('{"type": "function", "id": "x", "name": "bash", "arguments": {"command": "ls"}}', [LS]),
    "openai": ('{"type":"function","function":{"name":"bash","arguments":"{\\"command\\":\\"ls\\"}"}}', [LS]),
    "openai, object": ('{"function": {"name": "bash", "arguments": {"command": "ls"}}}', [LS]),
    "function is the name": ('{"function": "bash", "parameters": {"command": "ls"}}', [LS]),
    "tool_calls": (f'{{"tool_calls": [{JSON_LS}, {JSON_PWD}]}}', [LS, PWD]),
    "function_call": (f'{{"function_call": {JSON_LS}}}', [LS]),
    "list": (f"[{JSON_LS}, {JSON_PWD}]", [LS, PWD]),
    "lines": (f"{JSON_LS}\n{JSON_PWD}", [LS, PWD]),
    "no arguments": ('{"name": "bash", "arguments": {}}', [("bash", {})]),
    "fenced": (f"```json\n{JSON_LS}\n```", [LS]),
    "fenced, no language": (f"```\n{JSON_LS}\n```", [LS]),
    "fenced tags": (f"```xml\n<tool_call>{JSON_LS}</tool_call>\n```", [LS]),
    "hermes": (f"<tool_call>\n{JSON_LS}\n</tool_call>", [LS]),
    "hermes, two": (f"<tool_call>{JSON_LS}</tool_call>\n<tool_call>\n{JSON_PWD}\n</tool_call>", [LS, PWD]),
    "hermes, not closed": (f"<tool_call>\n{JSON_LS}", [LS]),
    "hermes, without arguments": ('<tool_call>{"name": "terminate"}</tool_call>', [("terminate", {})]),
    "hermes, a closing tag in the arguments": (
        '<tool_call>{"name": "bash", "arguments": {"command": "echo </tool_call>"}}</tool_call>',
        [("bash", {"command": "echo </tool_call>"})],
    ),
    "special tokens at the end": (f"<tool_call>{JSON_LS}</tool_call><|im_end|>", [LS]),
    "mistral list": (f"[TOOL_CALLS][{JSON_LS}, {JSON_PWD}]</s>", [LS, PWD]),
    "mistral list, space": (f"[TOOL_CALLS] [{JSON_LS}]", [LS]),
    "mistral args": ('[TOOL_CALLS]bash[ARGS]{"command": "ls"}', [LS]),
    "mistral id": ('[TOOL_CALLS]bash[CALL_ID]VvvODy9mT[ARGS]{"command": "ls"}', [LS]),
    "mistral name": ('[TOOL_CALLS]bash{"command": "ls"}[TOOL_CALLS]bash{"command": "pwd"}', [LS, PWD]),
    "llama": (f"<|python_tag|>{JSON_LS}<|eom_id|>", [LS]),
    "llama, several": (f"<|python_tag|>{JSON_LS}; {JSON_PWD}<|eot_id|>", [LS, PWD]),
    "granite": (f"<|tool_call|>[{JSON_LS}]", [LS]),
    "phi": (f"<|tool_call|>[{JSON_LS}, {JSON_PWD}]<|/tool_call|>", [LS, PWD]),
    "function json": ('<function=bash>{"command": "ls"}</function>', [LS]),
    "functions": (
        '<function=bash>{"command": "ls"}</function>\n<function=bash>{"command": "pwd"}</function>',
        [LS, PWD],
    ),
    "qwen coder": (
        "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n<parameter=timeout>\n5\n</parameter>\n"
        "</function>\n</tool_call>",
        [("bash", {"command": "ls", "timeout": 5})],
    ),
    "qwen coder, text that looks like more": (
        "<function=edit>\n<parameter=text>\n<b>1</b>\n</parameter> is no end\n\n</parameter>\n<parameter=lines>[1, 2]</parameter>\n"
        "</function>",
        [("edit", {"text": "<b>1</b>\n</parameter> is no end\n", "lines": [1, 2]})],
    ),
    "qwen coder, a number for a text": (
        "<function=bash><parameter=command>42</parameter></function>",
        [("bash", {"command": "42"})],
    ),
    "glm": (
        "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n<arg_key>timeout</arg_key>\n"
        "<arg_value>5</arg_value>\n</tool_call>",
        [("bash", {"command": "ls", "timeout": 5})],
    ),
    "glm, no arguments": ("<tool_call>terminate\n</tool_call>", [("terminate", {})]),
    "deepseek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n"
        '{"command": "ls"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>',
        [LS],
    ),
    "deepseek 3.1": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": "ls"}<｜tool▁call▁end｜>'
        '<｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": "pwd"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [LS, PWD],
    ),
    "deepseek dsml": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="edit">\n<｜DSML｜parameter name="path" string="true">12</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="deep" string="false">{"a": 1}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        [("edit", {"path": "12", "deep": {"a": 1}})],
    ),
    "minimax": (
        '<minimax:tool_call>\n<invoke name="bash">\n<parameter name="command">ls</parameter>\n</invoke>\n</minimax:tool_call>',
        [LS],
    ),
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>"
        '{"command": "ls"}<|tool_call_end|><|tool_calls_section_end|>',
        [LS],
    ),
    "thoughts before": (f"<think>\nI list.\n</think>\n\n{JSON_LS}", [LS]),
    "thoughts that the template began": (f"I list.\n</think>\n\n<tool_call>{JSON_LS}</tool_call>", [LS]),
    "a thought's end in the arguments": (
        '{"name": "bash", "arguments": {"command": "echo </think>"}}',
        [("bash", {"command": "echo </think>"})],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_however_much_of_a_call_there_is_it_may_become_one(form: str) -> None:
    text = FORMS[form][0]
    if "</think" not in text:  # what stands before it is shown, and taken back
        assert all(may_be_written(text[:end]) for end in range(len(text) + 1))


@pytest.mark.parametrize(
    "answer",
    [
        "Hello",
        "[a link](x)",
        "[1, 2]",
        '{"answer"',
        '{\n  "nam": 1',
        '[{"title": ',
        "{}",
        "[]",
        "```python\n",
        "```\nls -la",
        '```json\n{"ans',
        "`x`",
        "<b>",
        "{1: 2}",
    ],
)
def test_the_beginning_of_an_answer_is_known_as_none_of_a_call(answer: str) -> None:
    assert not may_be_written(answer)


@pytest.mark.parametrize(("text", "expected"), FORMS.values(), ids=FORMS)
def test_a_call_in_a_known_form_is_read_as_that_call(text: str, expected: list[tuple[str, Any]]) -> None:
    assert calls(text) == expected


TEXTS = {
    "prose before": f"I will list the files.\n{JSON_LS}",
    "prose behind": f"{JSON_LS}\nThis lists the files.",
    "prose around a fence": f"Run this:\n```json\n{JSON_LS}\n```",
    "prose behind a fence": f"```json\n{JSON_LS}\n```\nThat is it.",
    "two fences": f"```json\n{JSON_LS}\n```\nor\n```json\n{JSON_PWD}\n```",
    "a fence of another language": f"```python\n{JSON_LS}\n```",
    "a nested fence": f"```\n```json\n{JSON_LS}\n```\n```",
    "prose in thoughts": f"<think>{JSON_LS}</think>",
    "thoughts without an end": f"<think>{JSON_LS}",
    "prose after thoughts": f"<think>x</think>Use {JSON_LS}",
    "unknown tool": '{"name": "Bash", "arguments": {"command": "ls"}}',
    "one of two unknown": f'[{JSON_LS}, {{"name": "rm", "arguments": {{}}}}]',
    "one of two is none": f"[{JSON_LS}, 1]",
    "an answer with a name": '{"name": "bash"}',
    "an answer with a name and more": '{"name": "bash", "arguments": {"command": "ls"}, "version": "5.2"}',
    "a description of the tool": '{"name": "bash", "parameters": {"type": "object", "properties": {"command": {}}}}',
    "a tool as it is declared": '{"type": "function", "function": {"name": "bash", "description": "x", "parameters": {}}}',
    "names and arguments of another kind": '{"name": "bash", "arguments": ["ls", "-l"]}',
    "arguments that are a text": '{"name": "bash", "arguments": "ls"}',
    "null": '{"name": "bash", "arguments": null}',
    "another type": '{"type": "person", "name": "bash", "arguments": {"command": "ls"}}',
    "two names": '{"name": "bash", "tool": "edit", "arguments": {"command": "ls"}}',
    "twice the same key": '{"name": "bash", "name": "bash", "arguments": {"command": "ls"}}',
    "a list of nothing": "[]",
    "empty": "",
    "a number": "42",
    "a string": json.dumps(JSON_LS),
    "cut off": JSON_LS[:-1],
    "cut off in a string": JSON_LS[:-6],
    "closed wrongly": JSON_LS[:-2] + "]}",
    "a comma too many": f"[{JSON_LS},]",
    "no comma": f"[{JSON_LS} {JSON_PWD}]",
    "a file that quotes a call": json.dumps({"path": "notes.md", "content": JSON_LS}),
    "a function that says nothing and has no end": "<function=terminate>",
    "a call quoted in tags": f"&lt;tool_call&gt;{JSON_LS}&lt;/tool_call&gt;",
    "tags with prose": f"<tool_call>I would call {JSON_LS}</tool_call>",
    "prose between tags": f"<tool_call>{JSON_LS}</tool_call> and <tool_call>{JSON_PWD}</tool_call>",
    "prose behind tags": f"<tool_call>{JSON_LS}</tool_call>\nDone.",
    "a parameter without an end": "<function=bash><parameter=command>ls</function>",
    "a function without an end": "<function=bash><parameter=command>ls</parameter>",
    "python": 'bash(command="ls")',
    "python tag with python": '<|python_tag|>bash.call(command="ls")',
    "wrapped twice": f'{{"tool_calls": [{{"tool_calls": [{JSON_LS}]}}]}}',
    "mistral prose": '[TOOL_CALLS] I call bash {"command": "ls"}',
    "invoke without an end": '<function_calls><invoke name="bash"><parameter name="command">ls</parameter></invoke>',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_that_only_looks_like_a_call_stays_a_text(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": ()},
        {"choice": ToolChoice.NONE},
        {"finish_reason": "length"},
        {"finish_reason": "content_filter"},
        {"tool_calls": (ToolCall.__new__(ToolCall),)},
    ],
    ids=["no tools", "tool_choice none", "cut off", "filtered", "real calls"],
)
def test_where_calls_are_not_expected_none_is_read(fields: dict[str, Any]) -> None:
    assert read(JSON_LS, **fields) is None


def test_arguments_stay_as_they_were_written() -> None:
    written = '{"command" : "ls", "timeout": 123456789012345678901234567890.10, "x": 1e999, "command": "twice"}'
    reply = read(f'<tool_call>{{"name": "bash", "arguments": {written}}}</tool_call>')
    assert reply is not None
    assert reply.tool_calls[0].function.arguments == written


def test_thoughts_are_kept_and_ids_are_there_and_usage_stays() -> None:
    reply = read(f"<think>I list.</think>\n[{JSON_LS},{JSON_PWD}]", model="m", cost_usd=0.5)
    assert reply is not None
    assert [part.text for part in reply.thinking] == ["I list."]
    assert [call.id for call in reply.tool_calls] == ["call_1", "call_2"]
    assert (reply.model, reply.cost_usd) == ("m", 0.5)


def test_a_tool_without_a_schema_takes_any_arguments() -> None:
    assert calls('{"name": "free", "arguments": {"anything": 1}}') == [("free", {"anything": 1})]


HUGE = {
    "quotes": lambda n: '{"name": "' + '\\"' * n,
    "open brackets": lambda n: "[" * n,
    "open objects": lambda n: '{"a":' * n,
    "wrappers": lambda n: '{"function":' * n + JSON_LS + "}" * n,
    "tool_calls": lambda n: '{"tool_calls":[' * n,
    "calls": lambda n: f"[{','.join([JSON_LS] * (n // 20))}]",
    "prose": lambda n: "x" * n,
    "fences": lambda n: "```json\n" * n + "```",
    "tags": lambda n: "<tool_call>" * n,
    "closed tags": lambda n: f"<tool_call>{JSON_LS}</tool_call>" * (n // 20) + "x",
    "parameters": lambda n: "<function=bash><parameter=command>" + "</parameter> " * n,
    "open parameters": lambda n: "<function=bash>" + "<parameter=command>x" * n,
    "arg values": lambda n: "<tool_call>bash<arg_key>a</arg_key><arg_value>" + "</arg_value>\n" * n,
    "thoughts": lambda n: "<think>" * n,
    "many thoughts": lambda n: "<think></think>" * n,
    "spaces": lambda n: f"{JSON_LS}{' ' * n}x",
    "ends": lambda n: f"<|python_tag|>{JSON_LS}" + "</s> " * n + "x",
    "spaces in a list": lambda n: f"[{JSON_LS}{' ' * n}x",
    "invokes": lambda n: '<function_calls><invoke name="bash"><parameter name="a">' + "\n</parameter>\n" * n,
    "deep arguments": lambda n: '{"name": "bash", "arguments": {"command": ' + "[" * n + "]" * n + "}}",
    "members": lambda n: "{" + ",".join(f'"k{i}":1' for i in range(n)) + "}",
    "backslashes": lambda n: '{"name": "' + "\\" * n,
    "names": lambda n: "[TOOL_CALLS]" + "a" * n,
    "kimi": lambda n: "<|tool_calls_section_begin|><|tool_call_begin|>" + "a" * n,
}


@pytest.mark.parametrize("make", HUGE.values(), ids=HUGE)
def test_a_huge_text_is_read_in_linear_time_whatever_it_is(make: Any) -> None:
    began = time.process_time()
    read(make(200_000))
    assert time.process_time() - began < 3


_KEYS = st.sampled_from(["name", "tool", "function", "arguments", "parameters", "type", "tool_calls", "command", "x"])
_SCALARS = st.sampled_from(["bash", "edit", "function", "ls", 1, None, True, "{}"])
_ANY = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=12
)
_PIECES = st.sampled_from(
    [*"{}[]\",:\n ", "```json\n", "```", "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "<function=bash>", "</function>",
     "<parameter=command>", "</parameter>", "<think>", "</think>", "bash", JSON_LS, "[ARGS]", ";", "\\"]
)  # fmt: skip


@given(_ANY)
def test_any_json_is_a_text_or_calls_of_known_tools_with_the_arguments_in_it(value: Any) -> None:
    text = json.dumps(value)
    reply = read(text)
    if reply is None:
        return
    for call in reply.tool_calls:
        assert call.function.name in ("bash", "edit")
        assert isinstance(json.loads(call.function.arguments), dict)
        assert call.function.arguments in text or json.dumps(call.function.arguments) in text


@given(st.lists(_PIECES, max_size=14).map("".join))
def test_any_text_is_read_without_an_error(text: str) -> None:
    read(text)
