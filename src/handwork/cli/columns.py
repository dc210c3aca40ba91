"""Text and the columns of a terminal: how many it takes, how it is cut to them, and how its lines are broken between words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_WIDE = (
    "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    "\U0001f300-\U0001faff\U00020000-\U0003fffd"
)
_CLOSING = "\u3001\u3002\uff0c\uff0e\uff1a\uff1b\uff01\uff1f\u300d\u300f\uff09\u3011"
"""Wide marks that no line begins with."""
_COMMAND = r"(?<=: )(?:\S*handwork|\S*python[\d.]* -m|pip3?|pipx|uv|sudo|apt|apt-get|ollama|export) .*\Z"
_UNIT = re.compile(rf"{_COMMAND}|`[^`]+`[^\s`]*|[{_WIDE}][{_CLOSING}]*|[^\s{_WIDE}]+")
"""What stays in one piece: a command that ends the line or stands in ticks, a wide letter, a word."""
_WORD = re.compile(r"\S+")
_QUOTED = re.compile(r" *│ ")
_MARKED = re.compile(r" *(?:[^\w\s]|\d{1,3}[.)]) +")
_CELLS = re.compile(r"\S {2,}(?=\S)")


def width(text: str) -> int:
    """The columns that a line takes: a wide character two, a combining or joining one none."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit(row: str, columns: int) -> str:
    """The row, cut to so many columns."""
    if 2 * len(row) <= columns or (row.isascii() and len(row) <= columns):
        return row
    taken, fits = 0, 0
    for place, char in enumerate(row):
        taken += _width(char)
        if taken > columns:
            return row[:fits].rstrip() + "…"
        if taken < columns:
            fits = place + 1
    return row


def ending(text: str, columns: int) -> str:
    """The end of a line, of so many columns at most."""
    taken = 0
    for place in range(len(text) - 1, -1, -1):
        taken += _width(text[place])
        if taken > columns:
            return text[place + 1 :]
    return text


def padded(text: str, columns: int) -> str:
    """The text with blanks behind it up to so many columns."""
    return text + " " * (columns - width(text))


def wrapped(text: str, columns: int) -> str:
    """The text with each line that is wider broken between words, below where its words began.

    What stands behind `│`, code that is going to run, is broken anywhere, loses nothing, and goes on behind `┊`: it neither
    stands outside nor looks like a line of its own. A word or command that is wider than a line stays whole on a line of its
    own, so that it can be copied.
    """
    return "\n".join(row for line in text.split("\n") for row in _broken(line, columns))


def _broken(line: str, columns: int) -> list[str]:
    if width(line) <= columns:
        return [line]
    if quote := _QUOTED.match(line):
        first, *rest = _pieces(line[quote.end() :], max(columns - width(quote[0]), 2))
        return [quote[0] + first, *(quote[0].replace("│", "┊") + piece for piece in rest)]
    head, margin = _margin(line, columns)
    return list(_rows(line, head, " " * margin, columns - 1))


def _margin(line: str, columns: int) -> tuple[int, int]:
    """The length of what no word is parted from, and the column where the lines after the first begin: below the words behind a
    mark, or below the last cell of a row that begins near."""
    if mark := _MARKED.match(line):
        return mark.end(), width(mark[0])
    indent = len(line) - len(line.lstrip(" "))
    cells = (width(line[: cell.end()]) for cell in _CELLS.finditer(line))
    return indent, max((at for at in cells if at <= columns // 2), default=indent)


def _rows(line: str, head: int, rest: str, columns: int) -> Iterator[str]:
    row, end, begun = line[:head], head, False
    for begin, stop in _units(line, head, columns - len(rest)):
        more = line[end:stop]
        if begun and width(row) + width(more) > columns:
            yield row
            row, more = rest, line[begin:stop]
        row, end, begun = row + more, stop, True
    yield row


def _units(line: str, begin: int, room: int) -> Iterator[tuple[int, int]]:
    for found in _UNIT.finditer(line, begin):
        if found[0].startswith("`") and width(found[0]) > room:
            yield from (word.span() for word in _WORD.finditer(line, *found.span()))
        else:
            yield found.span()


def _pieces(text: str, columns: int) -> Iterator[str]:
    """The text in pieces of at most so many columns."""
    begin = taken = 0
    for place, char in enumerate(text):
        if taken + _width(char) > columns:
            yield text[begin:place]
            begin, taken = place, 0
        taken += _width(char)
    yield text[begin:]
