"""Calls that a model wrote as JSON, bare or in tags: one object, several, or a list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from handwork.llm.written.json_slices import end_of_value, items, members, skip_space, text_of


@dataclass(frozen=True, slots=True)
class Written:
    """One call as it was written: `arguments` is JSON as the model wrote it, `texts` what stood in tags instead (with a mark
    whether it is JSON: None if it does not say). `tagged`: it stood in tags, which nothing but a call does."""

    name: str
    arguments: str = "{}"
    texts: Mapping[str, tuple[str, bool | None]] = field(default_factory=dict)
    tagged: bool = True


Calls: TypeAlias = list[Written] | None
"""All calls that a text consists of; None if it is something else."""
_NAMES = ("name", "tool", "tool_name", "function", "function_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input")
_BESIDE = {"id", "type", "call_id"}
_TYPES = {"function", "tool_call", "function_call", "tool_use"}
_WRAPPERS = ("tool_calls", "tool_call", "function_call")
_KEYS = frozenset({*_NAMES, *_ARGUMENTS, *_BESIDE, *_WRAPPERS})
_FIRST_KEY = re.compile(r'(?:\[\s*)?(?:\Z|\{\s*(?:\Z|"(?P<key>[^"]*)(?P<whole>"?)))')
_ENDS = re.compile(r"(?:\s|</s>|<\|e[oa][mt]_id\|>|<\|im_end\|>|<\|end\|>|<\|/tool_call\|>|<｜end▁of▁sentence｜>)*+\Z")


def is_end(text: str, at: int) -> bool:
    return _ENDS.match(text, at) is not None


def may_be_calls(text: str) -> bool:
    """Whether a text that begins so may come to be calls in bare JSON: such an object has keys that only calls have."""
    begun = _FIRST_KEY.match(text)
    if begun is None:
        return False
    key = begun["key"]
    if key is None or "\\" in key:
        return True
    return key in _KEYS if begun["whole"] else any(known.startswith(key) for known in _KEYS)


def json_at(text: str, at: int, *, tagged: bool) -> tuple[list[Written], int] | None:
    """One object or list at `at`, all of it calls, and where it ends."""
    at = skip_space(text, at)
    end = end_of_value(text, at)
    if end is None or text[at] not in "{[":
        return None
    calls = _of_value(text[at:end], tagged=tagged)
    return None if calls is None else (calls, end)


def _of_value(raw: str, *, tagged: bool, wrapped: bool = False) -> Calls:
    if raw.startswith("["):
        found = items(raw)
        if found is None or not found[0]:
            return None
        each = [_of_object(item, tagged=tagged) for item in found[0]]
        calls = [call for call in each if call is not None]
        return calls if len(calls) == len(each) else None
    found_members = members(raw)
    if found_members is None:
        return None
    if len(found_members[0]) == 1 and not wrapped:
        [(name, value)] = found_members[0].items()
        if name in _WRAPPERS and value[:1] in ("[", "{"):
            return _of_value(value, tagged=tagged, wrapped=True)
    call = _of_object(raw, tagged=tagged)
    return None if call is None else [call]


def _of_object(raw: str, *, tagged: bool, inner: bool = False) -> Written | None:
    """`{"name": …, "arguments": …}`, or that as the value of `function`."""
    found = members(raw)
    if found is None:
        return None
    parts = found[0]
    if "type" in parts and text_of(parts["type"]) not in _TYPES:
        return None
    if parts.get("function", "").startswith("{"):
        whole = not inner and set(parts) - {"function"} <= _BESIDE
        return _of_object(parts["function"], tagged=tagged, inner=True) if whole else None
    names = [key for key in _NAMES if key in parts]
    arguments = [key for key in _ARGUMENTS if key in parts]
    if len(names) != 1 or len(arguments) > 1 or set(parts) - {*names, *arguments} - _BESIDE:
        return None
    name = text_of(parts[names[0]])
    written = _arguments(parts[arguments[0]]) if arguments else None
    if written is None and tagged and (not arguments or parts[arguments[0]] == "null"):
        written = "{}"
    return None if name is None or written is None else Written(name, written, tagged=tagged)


def _arguments(raw: str) -> str | None:
    """Arguments as JSON: an object as it is written, or one inside of a string."""
    text = text_of(raw) if raw.startswith('"') else raw
    return text if text is not None and text.lstrip().startswith("{") else None


def bare_json(text: str, _: int) -> Calls:
    """Objects or one list, as Llama separates them."""
    return _sequence(text, 0, tagged=False)


def _sequence(text: str, at: int, *, tagged: bool) -> Calls:
    calls: list[Written] = []
    while True:
        if (found := json_at(text, at, tagged=tagged)) is None:
            return None
        calls += found[0]
        at = skip_space(text, found[1])
        if text[at : at + 1] == ";":
            at += 1
        if is_end(text, at):
            return calls


def tagged_json(text: str, at: int) -> Calls:
    return _sequence(text, at, tagged=True)
