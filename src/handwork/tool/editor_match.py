"""Find the one place that an edit means, change only that, and say so when there is none or more than one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from handwork.errors import ToolError
from handwork.tool.editor_diff import changes
from handwork.tool.editor_hint import not_found
from handwork.tool.editor_text import FileText, as_plain

_MAX_PLACES = 20
_ENDINGS = {"\n": re.compile("\r?\n"), "\r\n": re.compile("\r?\n"), "\r": re.compile("\r")}


@dataclass(frozen=True, slots=True)
class Edited:
    """A file after an edit; `start` and `end` are the offsets in its text that hold what is new."""

    file: FileText
    start: int
    end: int


def replace(file: FileText, old: str, new: str, path: str) -> Edited:
    """Put `new` in the place of the only `old`; all other characters, line endings included, stay as they are.

    Errors: ToolError when nothing would change, when `old` is empty, missing (with the nearest lines) or there more than once.
    """
    if not old and file.text:
        raise ToolError("`old_str` is empty: give the exact text to replace, or use `insert` to add text.")
    if old == new:
        raise ToolError("No replacement was performed: `old_str` and `new_str` are the same.")
    if "\r" in old and _only(file.text, old):
        start = file.text.index(old)
        return _splice(file, start, start + len(old), new)  # the model wrote the endings itself
    lone = "\n" if file.ending == "\r" else "\r"
    old, new = as_plain(old).replace("\r", lone), as_plain(new).replace("\r", lone)
    if old == new:
        raise ToolError("No replacement was performed: `old_str` and `new_str` differ in their line endings only.")
    places = list(islice(_places(file.plain.text, old), _MAX_PLACES + 1))
    if not places:
        raise ToolError(not_found(file, old, path))
    if len(places) > 1:
        raise ToolError(_too_many(file, places, path))
    return _replace_at(file, places[0], old, new)


def insert(file: FileText, line: int, new: str, path: str) -> Edited:
    """Put `new` after the line of that number (0: before the first).

    Errors: ToolError when there is no such line.
    """
    count = len(file.lines)
    if not 0 <= line <= count:
        raise ToolError(f"Invalid `insert_line` {line}: {path} has {count} lines, so it must be within [0, {count}].")
    ending = file.ending
    text = as_plain(new).replace("\n", ending)
    offset = sum(map(len, file.lines[:line]))
    before = file.text[:offset]
    if before and not before.endswith(ending[-1]):  # the last line has no end: give it one, and take none
        edited = _splice(file, offset, offset, ending + text)
        return Edited(edited.file, edited.start + len(ending), edited.end)
    return _splice(file, offset, offset, text if text.endswith(ending) else text + ending)


def _only(text: str, part: str) -> bool:
    first = text.find(part)
    return first >= 0 and text.find(part, first + 1) < 0


def _places(text: str, part: str) -> Iterator[int]:
    """Every place, overlapping ones too: two readings of one place are as ambiguous as two places."""
    if not part:
        yield 0
        return
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _splice(file: FileText, start: int, end: int, new: str) -> Edited:
    return Edited(file.with_text(file.text[:start] + new + file.text[end:]), start, start + len(new))


def _replace_at(file: FileText, at: int, old: str, new: str) -> Edited:
    """Replace line by line: a line that stays keeps its bytes, one that takes the place of another keeps its ending."""
    first, last = file.plain.original(at), file.plain.original(at + len(old))
    were, lines = old.split("\n"), new.split("\n")
    endings = _ENDINGS[file.ending].findall(file.text, first, last)
    chosen = [file.ending] * (len(lines) - 1)
    for i, j in _partners(were, lines):
        if i < len(endings) and j < len(chosen):
            chosen[j] = endings[i]
    return _splice(file, first, last, "".join(map("".join, zip(lines, [*chosen, ""], strict=True))))


def _partners(were: list[str], lines: list[str]) -> Iterator[tuple[int, int]]:
    """Which old line became which new one: the same, or the one at its place where lines were replaced."""
    i = j = 0
    for a, b, c, d in [*changes(were, lines), (len(were), len(were), len(lines), len(lines))]:
        yield from zip(range(i, a), range(j, c), strict=True)
        yield from zip(range(a, b), range(c, d), strict=False)
        i, j = b, d


def _too_many(file: FileText, places: list[int], path: str) -> str:
    lines = [file.plain.text.count("\n", 0, place) + 1 for place in places]
    shown = ", ".join(map(str, dict.fromkeys(lines[:_MAX_PLACES])))
    more = " and more" if len(places) > _MAX_PLACES else ""
    return (
        f"No replacement was performed. `old_str` occurs more than once in {path}: in lines {shown}{more}. "
        "Add neighbouring lines to it until it is unique."
    )
