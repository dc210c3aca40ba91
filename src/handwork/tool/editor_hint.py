"""Why a text was not found in a file, and what comes nearest; each look takes a time linear in the file."""

from __future__ import annotations

import difflib
import heapq
import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate, zip_longest

from handwork.tool.editor_text import FileText, visible
from handwork.tool.lookalikes import described, skeleton

_MAX_WORDS = 2000
_MAX_LINES = 100_000
_MAX_LINE = 400
_COMPARED = 160
"""Characters of a line that are compared with another: comparing takes the product of both lengths."""
_PIECES, _PIECE = 24, 3
_NUMBERS = re.compile(r"(?m)^ *\d+(?:\t|: ?|→| ?[|│] ?|  +)")
_FINALISTS = 8


def not_found(file: FileText, old: str, path: str) -> str:
    """What to tell of an `old` (with LF endings) that the file's plain text does not hold."""
    text = f"No replacement was performed: `old_str` did not appear verbatim in {path}."
    looks = (_numbered, _spacing, _case, _alike, _nearest)
    if hint := next((hint for look in looks if (hint := look(file, old))), ""):
        return f"{text} {hint}"
    return f"{text} No line resembles it: view the file again."


def _numbered(file: FileText, old: str) -> str:
    """Line numbers of `view` in front of the lines, with its tab or with what people make of it."""
    bare = _NUMBERS.sub("", old)
    if bare != old and (bare in file.plain.text or _spacing(file, bare)):
        return "It contains the line numbers that `view` shows: leave them (and the tab after each) out."
    return ""


def _spacing(file: FileText, old: str) -> str:
    """The same words with other white space between them, the first and the last of which may be parts of longer words."""
    words = old.split()
    if not words or len(words) > _MAX_WORDS:
        return ""
    lines = file.plain.text.split("\n")
    squeezed = [" ".join(line.split()) for line in lines]
    full = [index for index, line in enumerate(squeezed) if line]
    text, wanted = " ".join(squeezed[index] for index in full), " ".join(words)
    at = text.find(wanted)
    if at < 0:
        return ""
    starts = [0, *accumulate(len(squeezed[index]) + 1 for index in full)]
    first = full[bisect_right(starts, at) - 1]
    last = full[bisect_right(starts, at + len(wanted) - 1) - 1]
    ours = old.strip("\n").split("\n")
    return f"It does appear at line {first + 1} with other white space. {_difference(lines[first : last + 1], ours, first + 1)}"


def _case(file: FileText, old: str) -> str:
    text, wanted = file.plain.text.lower(), old.lower()
    at = text.find(wanted)
    if at < 0:
        return ""
    line = text.count("\n", 0, at)
    start = (
        at - text.rfind("\n", 0, at) - 1
    )  # where in its line, which may be longer in lower case, but hardly before this
    theirs = file.plain.text.split("\n")[line : line + old.count("\n") + 1]
    theirs[0] = theirs[0][start:]
    theirs[-1] = theirs[-1][: len(old.rsplit("\n", 1)[-1])]
    return f"It does appear at line {line + 1} in other case. {_difference(theirs, old.split(chr(10)), line + 1)}"


def _alike(file: FileText, old: str) -> str:
    """The same to the eye: other dashes, quotes, blanks or letters of another script, composed otherwise, or with what is unseen."""
    if file.plain.text.isascii() and old.isascii():
        return ""
    text, wanted = skeleton(file.plain.text), skeleton(old)
    at = text.find(wanted) if wanted.strip() else -1
    if at < 0:
        return ""
    line = text.count("\n", 0, at)
    theirs = file.plain.text.split("\n")[line : line + old.count("\n") + 1]
    for index, (one, two) in enumerate(zip(theirs, old.split("\n"), strict=False)):
        if two not in one:
            return f"It does appear at line {line + 1} in characters that only look alike. Line {line + 1 + index} {_unlike(one, two)}"
    return f"It does appear at line {line + 1} in characters that only look alike."


def _unlike(theirs: str, ours: str) -> str:
    """The first character in which the two lines differ, from where they begin to look the same."""
    if len(theirs) > 2 * _MAX_LINE:
        return f"is one of them:\n  old_str: {_quoted(ours)}"
    wanted = skeleton(ours)
    start = max((at for at in range(len(theirs)) if skeleton(theirs[at:]).startswith(wanted)), default=0)
    one, two = next(
        (pair for pair in zip_longest(theirs[start:], ours, fillvalue="\n") if pair[0] != pair[1]), ("\n", "\n")
    )
    return (
        f"has {described(one)} where `old_str` has {described(two)}:\n"
        f"  file:    {_quoted(theirs)}\n  old_str: {_quoted(ours)}"
    )


def _difference(theirs: list[str], ours: list[str], line: int) -> str:
    last = len(ours) - 1
    for index, (one, two) in enumerate(zip(theirs, ours, strict=False)):
        within = (index == 0 and one.endswith(two)) or (index == last and one.startswith(two))
        if one != two and not within:  # old_str may begin and end inside a line
            return f"The first difference, line {line + index}:\n  file:    {_quoted(one)}\n  old_str: {_quoted(two)}"
    return (
        f"The file has {len(theirs)} lines there, `old_str` has {len(ours)}; mind blank lines and spaces at line ends."
    )


def _quoted(line: str) -> str:
    return repr(visible(line[:_MAX_LINE]))


def _nearest(file: FileText, old: str) -> str:
    """The lines that most resemble the longest line of old_str."""
    wanted = max(old.split("\n"), key=lambda line: len(line.strip())).strip()[:_MAX_LINE]
    lines: dict[str, int] = {}
    for number, line in enumerate(file.lines[:_MAX_LINES], 1):
        lines.setdefault(line[: 2 * _MAX_LINE].strip()[:_MAX_LINE], number)
    close = closest(wanted, lines)
    if not close:
        return ""
    shown = "\n".join(
        f"{number:6}\t{visible(file.lines[number - 1][:_MAX_LINE])}" for number in sorted(lines[line] for line in close)
    )
    return f"The nearest lines to `{wanted}`:\n{shown}"


def closest(wanted: str, texts: Iterable[str]) -> list[str]:
    """Of these short texts at most three that resemble the wanted one, the best first.

    All are asked for pieces of it, which is quick; only those that have most of them are compared in earnest.
    """
    step = max(len(wanted) // _PIECES, 1)
    pieces = {wanted[at : at + _PIECE].lower() for at in range(0, max(len(wanted) - _PIECE + 1, 1), step)}
    shared = ((sum(piece in low for piece in pieces), text) for text in texts if text and (low := text.lower()))
    best = heapq.nlargest(_FINALISTS, (pair for pair in shared if pair[0]), key=lambda pair: pair[0])
    by_start: dict[str, str] = {}
    for _, text in best:
        by_start.setdefault(text[:_COMPARED], text)
    return [by_start[start] for start in difflib.get_close_matches(wanted[:_COMPARED], by_start, n=3, cutoff=0.6)]
