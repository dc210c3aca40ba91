"""A reply whose whole text is a tool call in a form that models write is read as that call (CONTRACT E10). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from handwork.llm.written.arguments import arguments_of
from handwork.llm.written.json_slices import members
from handwork.llm.written.objects import Calls, Written, bare_json, may_be_calls, tagged_json
from handwork.llm.written.tags import deepseek, function_tags, invokes, kimi, mistral, tool_call_tags
from handwork.schema import JSON, Function, Reply, Request, Thinking, ToolCall, ToolChoice

_THOUGHT = re.compile(r"\s*<(think|thinking)>(.*?)</\1>", re.DOTALL)
_FENCE = re.compile(r"```[ \t]*(|json|tool_calls?|xml)[ \t]*\r?\n", re.IGNORECASE)

_FORMS: dict[str, Callable[[str, int], Calls]] = {
    "{": bare_json,
    "<tool_call>": tool_call_tags,
    "<function=": function_tags,
    "[TOOL_CALLS]": mistral,
    "<|python_tag|>": tagged_json,
    "<|tool_call|>": tagged_json,
    "<｜tool▁calls▁begin｜>": deepseek,
    "<|tool_calls_section_begin|>": kimi,
    "<｜DSML｜function_calls>": invokes("</｜DSML｜function_calls>"),
    "<｜DSML｜tool_calls>": invokes("</｜DSML｜tool_calls>"),
    "<minimax:tool_call>": invokes("</minimax:tool_call>"),
    "<function_calls>": invokes("</function_calls>"),
    "[": bare_json,
}
"""How a text begins, and who reads it; a longer beginning stands before a shorter one."""


def with_written_calls(reply: Reply, request: Request) -> Reply | None:
    """The reply with the calls that its text consists of; None if it is none, or not all of it is.

    Only tools that the request offers count, by their exact names, and only whole texts: a call that is quoted in prose,
    in a file or beside other JSON is a text. Thoughts in tags before it are kept as thinking.
    """
    if reply.tool_calls or not reply.content or reply.finish_reason not in ("stop", "tool_calls"):
        return None
    if not request.tools or request.tool_choice is ToolChoice.NONE:
        return None
    tools = {str(tool["function"]["name"]): tool["function"] for tool in request.tools}
    thoughts, written = _read(reply.content)
    if not written or not all(_is_meant(call, tools) for call in written):
        return None
    calls = tuple(_tool_call(number, call, tools) for number, call in enumerate(written, 1))
    thinking = (*reply.thinking, *(Thinking(text=thought) for thought in thoughts))
    return replace(reply, content=None, tool_calls=calls, thinking=thinking, finish_reason="tool_calls")


_HALF_A_FENCE = re.compile(r"`{1,2}\Z|```[^\n]*\Z")


def may_be_written(text: str) -> bool:
    """Whether a text that begins so (200 characters suffice) may come to be a written call; unlike `[a link]`, an answer in JSON
    or a sentence."""
    text = text.lstrip()
    if _HALF_A_FENCE.match(text):
        return True
    if (fence := _FENCE.match(text)) is not None:
        text = text[fence.end() :].lstrip()
    if not text or may_be_calls(text):
        return True
    tags = [beginning for beginning in _FORMS if len(beginning) > 1]
    return any(text.startswith(tag) or tag.startswith(text) for tag in tags)


def _read(content: str) -> tuple[list[str], Calls]:
    """(thoughts, calls): the calls that the content consists of besides thoughts before them."""
    thoughts, at = [], 0
    while found := _THOUGHT.match(content, at):
        thoughts.append(found[2].strip())
        at = found.end()
    calls = _calls_of(_unfenced(content[at:].strip()))
    if (
        calls is None and not thoughts
    ):  # some templates begin the thoughts themselves, so that only their end is written
        before, end, text = content.partition("</think>")
        if end and "<think" not in before:
            thoughts, calls = [before.strip()], _calls_of(_unfenced(text.strip()))
    return [thought for thought in thoughts if thought], calls


def _calls_of(text: str) -> Calls:
    for beginning, read in _FORMS.items():
        if text.startswith(beginning):
            return read(text, len(beginning))
    return None


def _unfenced(text: str) -> str:
    opened = _FENCE.match(text)
    if opened is None or not text.endswith("```") or len(text) < opened.end() + 3:
        return text
    return text[opened.end() : -3].strip()


def _is_meant(call: Written, tools: Mapping[str, Mapping[str, JSON]]) -> bool:
    """Whether a call names a tool and, where its form could be an answer in JSON as well, an argument of that tool."""
    if call.name not in tools:
        return False
    found = members(call.arguments) if not call.tagged else None
    properties = (tools[call.name].get("parameters") or {}).get("properties")
    if not found or not found[0] or not properties:
        return True
    return not found[0].keys().isdisjoint(properties)


def _tool_call(number: int, call: Written, tools: Mapping[str, Mapping[str, JSON]]) -> ToolCall:
    schema = tools[call.name].get("parameters") or {}
    arguments = arguments_of(call.texts, schema) if call.texts else call.arguments
    return ToolCall(id=f"call_{number}", function=Function(name=call.name, arguments=arguments))
