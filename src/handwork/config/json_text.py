"""JSON as people and programs keep it in their settings: with comments and a comma after the last value, and nothing else odd."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handwork.config.files import too_deep, too_much
from handwork.config.key_lines import KeyLines
from handwork.errors import ConfigError

_STRING = r'"(?:[^"\\\n]|\\.)*"?'
_COMMENT = re.compile(rf"{_STRING}|(?P<out>//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)")
_LAST_COMMA = re.compile(rf"{_STRING}|(?P<out>,)(?=\s*[}}\]])")
_HALF = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def _all(data: Any) -> Any:
    return data


def parse_json(text: str, file: Path, part: Callable[[Any], Any] = _all) -> tuple[dict[str, Any], KeyLines]:
    """The object in a text, and where its keys stand. `part` is what of it counts: the rest may hold what no setting is. Raises
    ConfigError, which names the line."""
    try:
        return _parsed(text, file, part)
    except _NotPlain as error:
        plain = without_comments(text)
        if plain == text:
            raise error.told from None
    try:
        return _parsed(plain, file, part)
    except _NotPlain as error:
        raise error.told from None


def without_comments(text: str) -> str:
    """The text with blanks in the place of comments, and of commas that nothing follows: every other character stays where it is."""
    return _LAST_COMMA.sub(_blank, _COMMENT.sub(_blank, text))


def _blank(found: re.Match[str]) -> str:
    return found[0] if found["out"] is None else re.sub(r"[^\n]", " ", found[0])


def _parsed(text: str, file: Path, part: Callable[[Any], Any]) -> tuple[dict[str, Any], KeyLines]:
    lines = KeyLines(text, json=True)
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number) if text.strip() else {}
    except _RepeatedKey:
        path, first, number = lines.repeated() or (("a key",), 1, 1)
        raise ConfigError(f"{file}, line {number}: {path[-1]} is set twice; first on line {first}") from None
    except json.JSONDecodeError as error:
        told = ConfigError(f"{file}, line {error.lineno}: this is not valid JSON: {error.msg}")
        raise _NotPlain(told) from None
    except (RecursionError, ValueError) as error:
        raise too_much(text, file, lines, error) from None
    counts = part(data)
    if too_deep(counts):
        raise too_much(text, file, lines, RecursionError())
    if half := _half_a_character(text, counts):
        raise ConfigError(f"{file}, line {text.count(chr(10), 0, half.start()) + 1}: {half[0]} is half of a character")
    if not isinstance(data, dict):
        raise ConfigError(f'{file}, line 1: this must be an object: {{"mcpServers": {{…}}}}')
    return data, lines


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise _RepeatedKey
    return dict(pairs)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


def _half_a_character(text: str, data: Any) -> re.Match[str] | None:
    """The first escape that no other completes to a character, as no text can hold it."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return _HALF.search(text)
    return None


class _RepeatedKey(ValueError):
    """A key stands twice in one object."""


class _NotPlain(Exception):
    """The text is no plain JSON; `told` says where."""

    def __init__(self, told: ConfigError) -> None:
        self.told = told
