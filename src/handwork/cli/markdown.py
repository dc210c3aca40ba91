"""Markdown drawn line by line as it arrives; a line that is no Markdown stays as it is."""

from __future__ import annotations

import re

from rich.box import ROUNDED, Box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text

from handwork.cli.inline import inline

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)\Z")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.+?)[ \t#]*\Z")
_BULLET = re.compile(r"([ \t]*)[-*+]([ \t]+)(\S.*)\Z")
_NUMBER = re.compile(r"([ \t]*\d{1,9}[.)][ \t]+)(\S.*)\Z")
_QUOTE = re.compile(r" {0,3}((?:>[ \t]?)+)(.*)\Z")
_ROW = re.compile(r"[ \t]*\|.*\|[ \t]*\Z")
_RULE_OF_TABLE = re.compile(r"[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*\Z")
_CELL_END = re.compile(r"(?<!\\)\|")
_BATCH, _LOOK_BACK = 8, 64
"""Lines of code that are coloured at once, and those before them that are looked at for it: colouring is slow."""


class Markdown:
    """Takes lines, gives what to draw: `columns` is the width to wrap at. Ends of lines are no part of the lines."""

    def __init__(self, columns: int, box: Box = ROUNDED) -> None:
        self._columns, self._box = columns, box
        self._fence = ""
        self._indent = 0
        self._language = ""
        self._code: list[str] = []
        self._colourless = 0
        self._rows: list[str] = []

    @property
    def held(self) -> list[str]:
        """Lines that were taken and not yet drawn: a table of which there may be more, code that is not yet coloured."""
        return self._rows or (self._code[-self._colourless :] if self._colourless else [])

    def feed(self, line: str) -> list[RenderableType]:
        """What the next whole line lets be drawn."""
        if self._fence:
            return self._code_line(line)
        if _ROW.match(line):
            self._rows.append(line)
            return []
        drawn = self._end_table()
        if fence := _FENCE.match(line):
            self._indent, self._fence = len(fence[1]), fence[2]
            self._language, self._code = fence[3].strip().split(" ")[0], []
            return drawn
        return [*drawn, self._line(line)]

    def finish(self) -> list[RenderableType]:
        """What is left to draw when the text has ended."""
        self._fence = ""
        return [*self._coloured(), *self._end_table()]

    # ---- lines

    def _line(self, line: str) -> Text:
        if heading := _HEADING.match(line):
            return self._wrapped(inline(heading[2], "bold underline" if len(heading[1]) == 1 else "bold"), "")
        if bullet := _BULLET.match(line):
            return self._wrapped(inline(bullet[3]), f"{bullet[1].expandtabs(4)}•{bullet[2]}")
        if number := _NUMBER.match(line):
            return self._wrapped(inline(number[2]), number[1])
        if quote := _QUOTE.match(line):
            return self._wrapped(inline(quote[2], "italic"), "▎ " * quote[1].count(">"), repeat=True)
        indent = line[: len(line) - len(line.lstrip(" "))]
        return self._wrapped(inline(line[len(indent) :]), indent)

    def _wrapped(self, text: Text, first: str, *, repeat: bool = False) -> Text:
        """The text behind its mark, broken between words, the lines after the first below it."""
        room = self._columns - cell_len(first)
        rest = first if repeat else " " * cell_len(first)
        if room < 20 or cell_len(text.plain) <= room:
            return Text(first) + text
        return Text("\n").join(
            Text(first if place == 0 else rest) + row for place, row in enumerate(_broken(text, room))
        )

    # ---- code

    def _code_line(self, line: str) -> list[RenderableType]:
        bare = line.strip()
        if bare.startswith(self._fence) and not bare.strip(self._fence[0]):
            self._fence = ""
            return self._coloured()
        line = line[min(self._indent, len(line) - len(line.lstrip(" "))) :]
        if not self._language:
            return [Text(line)]
        self._code.append(line)
        self._colourless += 1
        return self._coloured() if self._colourless == _BATCH else []

    def _coloured(self) -> list[RenderableType]:
        count, self._colourless = self._colourless, 0
        code = self._code = self._code[-_LOOK_BACK - count :]
        return list(_highlighted(code, self._language)[len(code) - count :]) if count else []

    # ---- tables

    def _end_table(self) -> list[RenderableType]:
        rows, self._rows = self._rows, []
        if len(rows) < 2 or not _RULE_OF_TABLE.match(rows[1]):
            return [self._line(row) for row in rows]
        head, rule, *body = (_cells(row) for row in rows)
        table = Table(box=self._box, header_style=Style(bold=True), padding=(0, 1))
        for title, mark in zip(head, [*rule, *([""] * len(head))], strict=False):
            right, left = mark.endswith(":"), mark.startswith(":")
            table.add_column(
                inline(title), justify="center" if right and left else "right" if right else "left", overflow="fold"
            )
        for cells in body:
            if len(cells) > len(head):  # nothing of a ragged row is lost
                cells = [*cells[: len(head) - 1], " | ".join(cells[len(head) - 1 :])]
            table.add_row(*(inline(cell) for cell in cells))
        return [table]


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(row.strip()[1:-1])]


def _broken(text: Text, room: int) -> list[Text]:
    """The text in rows of at most `room` columns, broken at blanks; a longer word is left to the terminal."""
    rows: list[Text] = []
    begin = end = width = 0
    for word in re.finditer(r"[ \t]*[^ \t]+|[ \t]+", text.plain):
        more = cell_len(word[0])
        if width and width + more > room:
            rows.append(text[begin:end])
            begin = word.end() - len(word[0].lstrip(" \t"))
            width = cell_len(word[0].lstrip(" \t"))
        else:
            width += more
        end = word.end()
    return [*rows, text[begin:end]]


def _highlighted(code: list[str], language: str) -> list[Text]:
    """Lines of code in colours, as far as the language is known."""
    from rich.syntax import Syntax  # with it comes pygments: only when there is code

    text = Syntax("", language, theme="ansi_dark", background_color="default", tab_size=8).highlight("\n".join(code))
    lines = text.split("\n", allow_blank=True)
    return list(lines[: len(code)]) if len(lines) >= len(code) else [Text(line) for line in code]
