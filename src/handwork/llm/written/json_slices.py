"""Where the parts of a JSON text begin and end, without reading what is in them: linear, at any depth."""

from __future__ import annotations

import json
import re

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NEXT = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_SCALAR = re.compile(r"[-+.\w]+")
_SPACE = re.compile(r"[ \t\r\n]*")
_CLOSES = {"}": "{", "]": "["}


def skip_space(text: str, at: int) -> int:
    """The first place from `at` on that is no white space."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def end_of_value(text: str, at: int) -> int | None:
    """The end of the value that begins at `at`; None if there is none, or it does not end."""
    first = text[at : at + 1]
    if first in ("{", "["):
        return _end_of_nested(text, at)
    found = (_STRING if first == '"' else _SCALAR).match(text, at)
    if found is None or (first == '"' and not _is_closed(found[0])):
        return None
    return found.end()


def _end_of_nested(text: str, at: int) -> int | None:
    opened: list[str] = []
    for found in _NEXT.finditer(text, at):
        token = found[0]
        if token in ("{", "["):
            opened.append(token)
        elif token in _CLOSES:
            if opened.pop() != _CLOSES[token]:
                return None
            if not opened:
                return found.end()
    return None


def _is_closed(string: str) -> bool:
    return len(string) > 1 and string.endswith('"')


def text_of(string: str) -> str | None:
    """The text that a JSON string stands for; None if it is no JSON string. Line breaks in it are forgiven."""
    if not string.startswith('"'):
        return None
    try:
        made = json.loads(string, strict=False)
    except ValueError:
        return None
    return made if isinstance(made, str) else None


def members(text: str, at: int = 0) -> tuple[dict[str, str], int] | None:
    """The members of the object that begins at `at`, each as it is written, and where the object ends; None if it is none."""
    found: dict[str, str] = {}
    if text[at : at + 1] != "{":
        return None
    at = skip_space(text, at + 1)
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        end = end_of_value(text, at)
        name = text_of(text[at:end]) if end is not None else None
        if end is None or name is None or name in found:
            return None
        at = skip_space(text, end)
        if text[at : at + 1] != ":":
            return None
        at = skip_space(text, at + 1)
        if (end := end_of_value(text, at)) is None:
            return None
        found[name] = text[at:end]
        at = skip_space(text, end)
        if text[at : at + 1] == "}":
            return found, at + 1
        if text[at : at + 1] != ",":
            return None
        at = skip_space(text, at + 1)


def items(text: str, at: int = 0) -> tuple[list[str], int] | None:
    """The items of the list that begins at `at`, each as it is written, and where the list ends; None if it is none."""
    found: list[str] = []
    if text[at : at + 1] != "[":
        return None
    at = skip_space(text, at + 1)
    while text[at : at + 1] != "]" or found:
        if (end := end_of_value(text, at)) is None:
            return None
        found.append(text[at:end])
        at = skip_space(text, end)
        if text[at : at + 1] == "]":
            break
        if text[at : at + 1] != ",":
            return None
        at = skip_space(text, at + 1)
    return found, at + 1
