"""Calls in the tags that families of models have for them, where they stand in a text as they are."""

from __future__ import annotations

import re
from collections.abc import Callable

from handwork.llm.written.json_slices import end_of_value, skip_space
from handwork.llm.written.objects import Calls, Written, is_end, json_at

# ---- Mistral: [TOOL_CALLS][{…}], [TOOL_CALLS]name[CALL_ID]…[ARGS]{…}, [TOOL_CALLS]name{…}

_MISTRAL_NAME = re.compile(r"\s*([\w.-]+)(?:\[CALL_ID\]\w*)?(?:\[ARGS\])?\s*(?=\{)")


def mistral(text: str, at: int) -> Calls:
    calls: list[Written] = []
    while True:
        if named := _MISTRAL_NAME.match(text, at):
            if (end := end_of_value(text, named.end())) is None:
                return None
            calls.append(Written(named[1], text[named.end() : end]))
        elif found := json_at(text, at, tagged=True):
            calls, end = calls + found[0], found[1]
        else:
            return None
        if is_end(text, end):
            return calls
        at = skip_space(text, end)
        if not text.startswith("[TOOL_CALLS]", at):
            return None
        at += len("[TOOL_CALLS]")


# ---- <tool_call>…</tool_call>: Hermes and Qwen (JSON), Qwen's coder (<function=…>), GLM (<arg_key>)

_GLM_NAME = re.compile(r"\s*([\w.-]+)\s*(?=<arg_key>|</tool_call>)")
_GLM_PAIR = re.compile(
    r"\s*<arg_key>([^<]*)</arg_key>\s*<arg_value>(.*?)</arg_value>(?=\s*(?:<arg_key>|</tool_call>))", re.DOTALL
)


def tool_call_tags(text: str, at: int) -> Calls:
    calls: list[Written] = []
    while True:
        found = _function(text, skip_space(text, at)) or _glm(text, at) or json_at(text, at, tagged=True)
        if found is None:
            return None
        calls += found[0]
        at = skip_space(text, found[1])
        if not text.startswith("</tool_call>", at):
            return calls if is_end(text, at) else None
        at += len("</tool_call>")
        if is_end(text, at):
            return calls
        at = skip_space(text, at)
        if not text.startswith("<tool_call>", at):
            return None
        at += len("<tool_call>")


def _glm(text: str, at: int) -> tuple[list[Written], int] | None:
    if (named := _GLM_NAME.match(text, at)) is None:
        return None
    at, texts = named.end(), {}
    while pair := _GLM_PAIR.match(text, at):
        texts[pair[1].strip()] = (pair[2], None)
        at = pair.end()
    return [Written(named[1], texts=texts)], at


_FUNCTION = re.compile(r"<function=([\w.-]+)>\s*")
_PARAMETER = re.compile(r"\s*<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>(?=\s*(?:<parameter=|</function>))", re.DOTALL)


def _function(text: str, at: int) -> tuple[list[Written], int] | None:
    """`<function=name>{…}</function>`, or with `<parameter=x>…</parameter>` in it."""
    if (named := _FUNCTION.match(text, at)) is None:
        return None
    at = named.end()
    if text[at : at + 1] == "{":
        if (end := end_of_value(text, at)) is None:
            return None
        call, at = Written(named[1], text[at:end]), end
    else:
        texts = {}
        while pair := _PARAMETER.match(text, at):
            texts[pair[1].strip()] = (pair[2], None)
            at = pair.end()
        call = Written(named[1], texts=texts)
    at = skip_space(text, at)
    if text.startswith("</function>", at):
        return [call], at + len("</function>")
    return (
        ([call], at) if call.arguments != "{}" and is_end(text, at) else None
    )  # its end may be cut off, what it says not


def function_tags(text: str, _: int) -> Calls:
    calls, at = list[Written](), 0
    while found := _function(text, at):
        calls += found[0]
        if is_end(text, found[1]):
            return calls
        at = skip_space(text, found[1])
    return None


# ---- DeepSeek and Kimi: special tokens around name and JSON

_DEEPSEEK = re.compile(
    r"\s*<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>([\w.-]+)\s*```json\s*|([\w.-]+)<｜tool▁sep｜>\s*)"
)
_DEEPSEEK_END = re.compile(r"\s*(?:```)?\s*<｜tool▁call▁end｜>")
_KIMI = re.compile(
    r"\s*<\|tool_call_begin\|>\s*(?:functions\.)?([\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*"
)
_KIMI_END = re.compile(r"\s*<\|tool_call_end\|>")


def _between_tokens(
    begin: re.Pattern[str], end_of_call: re.Pattern[str], end_of_all: str
) -> Callable[[str, int], Calls]:
    def read(text: str, at: int) -> Calls:
        calls: list[Written] = []
        while named := begin.match(text, at):
            end = end_of_value(text, named.end())
            closed = end_of_call.match(text, end) if end is not None else None
            if end is None or closed is None:
                return None
            name = next(group for group in named.groups() if group)
            calls.append(Written(name, text[named.end() : end]))
            at = closed.end()
        at = skip_space(text, at)
        at += len(end_of_all) if text.startswith(end_of_all, at) else 0
        return calls if calls and is_end(text, at) else None

    return read


# ---- <invoke name="…"><parameter name="…">…: DeepSeek's DSML, MiniMax, and others with a prefix of their own

_INVOKE = re.compile(r'\s*<(?:｜DSML｜)?invoke name="([\w.-]+)"\s*>')
_INVOKE_END = re.compile(r"\s*</(?:｜DSML｜)?invoke>")
_NAMED_PARAMETER = re.compile(
    r'\s*<(?:｜DSML｜)?parameter name="([^"<>]+)"(?: string="(true|false)")?\s*>\n?(.*?)\n?</(?:｜DSML｜)?parameter>'
    r"(?=\s*<(?:(?:｜DSML｜)?parameter name=|/(?:｜DSML｜)?invoke>))",
    re.DOTALL,
)


def invokes(end_of_all: str) -> Callable[[str, int], Calls]:
    def read(text: str, at: int) -> Calls:
        calls: list[Written] = []
        while named := _INVOKE.match(text, at):
            at, texts = named.end(), {}
            while pair := _NAMED_PARAMETER.match(text, at):
                texts[pair[1]] = (pair[3], None if pair[2] is None else pair[2] == "false")
                at = pair.end()
            if (closed := _INVOKE_END.match(text, at)) is None:
                return None
            calls.append(Written(named[1], texts=texts))
            at = closed.end()
        at = skip_space(text, at)
        if not calls or not text.startswith(end_of_all, at) or not is_end(text, at + len(end_of_all)):
            return None
        return calls

    return read


deepseek = _between_tokens(_DEEPSEEK, _DEEPSEEK_END, "<｜tool▁calls▁end｜>")
kimi = _between_tokens(_KIMI, _KIMI_END, "<|tool_calls_section_end|>")
