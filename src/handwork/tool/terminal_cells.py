"""The cells of a terminal's screen: rows of characters, and how wide a character is."""

from __future__ import annotations

import unicodedata
from functools import lru_cache


class Row:
    """One row of cells; `wrapped` says that the next row goes on with its text. A wide character's second cell is ''."""

    __slots__ = ("cells", "wrapped")

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.wrapped = False

    def __str__(self) -> str:
        text = "".join(self.cells)
        return text if self.wrapped else text.rstrip(" ")

    def put(self, at: int, cells: list[str]) -> None:
        """Write over what stands there."""
        self._fill(at)
        self.cells[at : at + len(cells)] = cells

    def insert(self, at: int, cells: list[str], width: int) -> None:
        """Write and move the rest of the row to the right."""
        self._fill(at)
        self.cells[at:at] = cells
        del self.cells[width:]

    def delete(self, at: int, count: int) -> None:
        """Take cells out; the rest moves to the left."""
        del self.cells[at : at + count]

    def blank(self, start: int, end: int) -> None:
        """Erase the cells from `start` up to `end`."""
        if end >= len(self.cells):
            del self.cells[start:]
        else:
            self.put(start, [" "] * max(end - start, 0))

    def _fill(self, at: int) -> None:
        if len(self.cells) < at:
            self.cells.extend(" " * (at - len(self.cells)))


@lru_cache(maxsize=4096)
def width_of(character: str) -> int:
    """The columns that a character takes: 0 for one that joins the character before it, 2 for a wide one."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def joined(rows: list[Row]) -> list[str]:
    """Rows as lines of text: what was wrapped at the edge is one line again."""
    lines: list[str] = []
    going_on = False
    for row in rows:
        if going_on:
            lines[-1] += str(row)
        else:
            lines.append(str(row))
        going_on = row.wrapped
    return lines
