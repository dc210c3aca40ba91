"""Find the one place that an edit means, change only that, and explain when there is none or more than one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from handwork.errors import ToolError
from handwork.tool.editor_text import FileText, as_plain, visible

_MAX_PLACES = 20
_MAX_LINES = 20_000
_MAX_LINE = 400


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
        raise ToolError(_not_found(file, old, path))
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
    """Replace, leaving what old and new have in common at both ends untouched: its line endings survive in a mixed file."""
    head = _common(old, new)
    tail = min(_common(old[::-1], new[::-1]), len(old) - head, len(new) - head)
    start = file.plain.original(at + head)
    end = file.plain.original(at + len(old) - tail)
    first, last = file.plain.original(at), file.plain.original(at + len(old))
    edited = _splice(file, start, end, new[head : len(new) - tail].replace("\n", file.ending))
    return Edited(edited.file, first, last + len(edited.file.text) - len(file.text))


def _common(one: str, two: str) -> int:
    """The length of the common beginning."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _too_many(file: FileText, places: list[int], path: str) -> str:
    lines = [file.plain.text.count("\n", 0, place) + 1 for place in places]
    shown = ", ".join(map(str, dict.fromkeys(lines[:_MAX_PLACES])))
    more = " and more" if len(places) > _MAX_PLACES else ""
    return (
        f"No replacement was performed. `old_str` occurs more than once in {path}: in lines {shown}{more}. "
        "Add neighbouring lines to it until it is unique."
    )


def _not_found(file: FileText, old: str, path: str) -> str:
    text = f"No replacement was performed: `old_str` did not appear verbatim in {path}."
    if hint := _numbered(file, old) or _spacing(file, old) or _case(file, old) or _nearest(file, old):
        return f"{text} {hint}"
    return f"{text} No line resembles it: view the file again."


def _numbered(file: FileText, old: str) -> str:
    bare = re.sub(r"(?m)^ *\d+\t", "", old)
    if bare != old and bare in file.plain.text:
        return "It contains the line numbers that `view` shows: leave them (and the tab after each) out."
    return ""


def _spacing(file: FileText, old: str) -> str:
    words = old.split()
    if not words or len(words) > 2000:
        return ""
    match = re.search(r"\s+".join(map(re.escape, words)), file.plain.text)
    if not match:
        return ""
    start = file.plain.text.rfind("\n", 0, match.start()) + 1
    line = file.plain.text.count("\n", 0, start) + 1
    theirs = file.plain.text[start : match.end()].split("\n")
    ours = old.strip("\n").split("\n")
    return f"It does appear at line {line} with other white space. {_difference(theirs, ours, line)}"


def _difference(theirs: list[str], ours: list[str], line: int) -> str:
    for index, (one, two) in enumerate(zip(theirs, ours, strict=False)):
        if one != two:
            return f"The first difference, line {line + index}:\n  file:    {_quoted(one)}\n  old_str: {_quoted(two)}"
    return (
        f"The file has {len(theirs)} lines there, `old_str` has {len(ours)}; mind blank lines and spaces at line ends."
    )


def _quoted(line: str) -> str:
    return repr(visible(line[:_MAX_LINE]))


def _case(file: FileText, old: str) -> str:
    at = file.plain.text.lower().find(old.lower())
    if at < 0:
        return ""
    line = file.plain.text.count("\n", 0, at) + 1
    theirs = file.plain.text[at : at + len(old)].split("\n")
    return f"It does appear at line {line} in other case. {_difference(theirs, old.split(chr(10)), line)}"


def _nearest(file: FileText, old: str) -> str:
    """The lines that most resemble the longest line of old_str."""
    wanted = max(old.split("\n"), key=lambda line: len(line.strip())).strip()[:_MAX_LINE]
    lines: dict[str, int] = {}
    for number, line in enumerate(file.lines[:_MAX_LINES], 1):
        lines.setdefault(line.strip()[:_MAX_LINE], number)
    close = difflib.get_close_matches(wanted, [line for line in lines if line], n=3, cutoff=0.6) if wanted else []
    if not close:
        return ""
    shown = "\n".join(
        f"{number:6}\t{visible(file.lines[number - 1])[:_MAX_LINE]}" for number in sorted(lines[c] for c in close)
    )
    return f"The nearest lines to `{wanted}`:\n{shown}"
