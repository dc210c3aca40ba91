"""A tool call and its result as a person reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence

from pydantic_core import from_json

from handwork.cli.clean import clean_for_terminal, show_exactly
from handwork.schema import JSON, Action, ToolCall
from handwork.session.definitions import ABOUT_A_SERVER

_WRAPPED = re.compile(r"Observed output of cmd `[^`\n]*` executed:\n|Cmd `[^`\n]*` completed with no output\Z")


_RUN = ("command", "code")
_BESIDE = {"timeout", "pty", "restart"}
"""What stands beside a program's text without changing what the call is about."""
_NAMES_A_JOB = "job"


def arguments_of(raw: str) -> str:
    """Arguments in short, possibly of several lines: a program's text as the question about it shows it, with what stands
    beside it; another lone text as it is; else `name=value, …`. Nothing in it acts on the terminal."""
    arguments = _parsed(raw)
    if not isinstance(arguments, dict):
        return clean_for_terminal(raw)
    given = {name: value for name, value in arguments.items() if value is not None}
    main = next((name for name in _RUN if given.keys() - _BESIDE == {name}), "")
    if isinstance(text := given.get(main), str):
        shown = "\t".join(map(show_exactly, text.split("\t")))
        beside = _named_values({name: value for name, value in given.items() if name != main})
        if not beside:
            return shown
        return f"({beside})\n{shown}" if "\n" in shown else f"{shown}  ({beside})"
    lone = next(iter(given.values())) if len(given) == 1 and _NAMES_A_JOB not in given else None
    return clean_for_terminal(lone) if isinstance(lone, str) else _named_values(given)


def _named_values(arguments: Mapping[str, JSON]) -> str:
    return clean_for_terminal(", ".join(f"{name}={_short(value)}" for name, value in arguments.items()))


def exactly(call: ToolCall, leave_out: Collection[str] = ()) -> str:
    """Everything that will run, whole, with what could hide spelt out: what an approval is given for.

    Names of arguments begin their line and nothing else does: a value of several lines stands below its name, indented.

    Args:
        leave_out: arguments that are shown in another way.
    """
    arguments = _opened(_parsed(call.function.arguments))
    if not isinstance(arguments, dict):
        return show_exactly(call.function.arguments)
    if list(arguments) in (["command"], ["code"]):
        (value,) = arguments.values()
        if isinstance(value, str):
            return show_exactly(value)
    return "\n".join(f"{_named(name)}: {_whole(value)}" for name, value in arguments.items() if name not in leave_out)


def about_host(call: ToolCall, actions: Sequence[Action]) -> bool:
    """Whether a question is about a host that a program wants to reach, and not about a call."""
    return call.function.name == "network" and bool(actions) and all(each.kind == "network" for each in actions)


def about_server(call: ToolCall) -> bool:
    """Whether a question is about what an MCP server offers, and not about a call."""
    return call.function.name == ABOUT_A_SERVER


def observation_of(text: str) -> str:
    """A result without the words that frame it for the model."""
    return text[found.end() :] if (found := _WRAPPED.match(text)) else text


def _parsed(raw: str) -> JSON:
    try:
        return from_json(raw or "{}")
    except ValueError:
        return None


def _short(value: JSON) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text[:400].split())
    return text if len(text) <= 60 else text[:59] + "…"


def _opened(value: JSON) -> JSON:
    """JSON that was written into a text once more, as the tool will read it."""
    inner = _parsed(value) if isinstance(value, str) else None
    return inner if isinstance(inner, dict) else value


def _named(name: str) -> str:
    return show_exactly(name).replace("\n", "⟨U+000A⟩")


def _whole(value: JSON) -> str:
    if not isinstance(value, str):
        text = show_exactly(json.dumps(value, ensure_ascii=False, indent=2))
        return text.replace("\n", "\n  ")
    text = show_exactly(value)
    shown = "\n".join(["", *(f"  {line}" for line in text.split("\n"))]) if "\n" in text else text
    inner = _parsed(value) if value.lstrip().startswith(("{", "[")) else None
    return f"{shown}\n  read as JSON: {_whole(inner)}" if isinstance(inner, (dict, list)) and "\\" in value else shown
