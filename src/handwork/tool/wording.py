"""How what is told of a call names a place, a value and a number: short, and the same whoever tells it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

_LONGEST = 60
_ENDED = re.compile(r"""[.!?:;…][)\]}"'”»]*\Z""")
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def spot(path: Iterable[str | int]) -> str:
    """A path into the arguments as code writes it: 'edits[0].old_str'; the whole is "the arguments"."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"'{short(text.lstrip('.'))}'" if text else "the arguments"


def given(value: Any) -> str:
    """A value with its JSON type, cut to a readable length: string "abc", array [1, 2], null."""
    if value is None:
        return "null"
    name = next((name for kind, name in _TYPES if isinstance(value, kind)), type(value).__name__)
    return f"{name} {shown(value)}"


def shown(value: Any) -> str:
    """A value as JSON, cut to a readable length."""
    if isinstance(value, str):
        value = value[: _LONGEST + 1]  # never walk a book for its first words
    return short(json.dumps(value, ensure_ascii=False, default=repr))


def short(text: str) -> str:
    """At most 60 characters, in one line."""
    line = text.replace("\n", "\\n")
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def counted(number: int, one: str, many: str = "") -> str:
    """A number with what it counts: 1 file, 1,200 files."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def joined(sentences: Iterable[str | None]) -> str:
    """Sentences one behind the other, each ended where it does not end itself; empty ones are left out."""
    texts = [text for sentence in sentences if (text := (sentence or "").strip())]
    ended = [text if _ENDED.search(text) else f"{text}." for text in texts[:-1]]
    return " ".join((*ended, *texts[-1:]))
