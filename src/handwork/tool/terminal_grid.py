"""What a terminal's screen holds: rows and a cursor, and what moves, writes, scrolls and erases there."""

from __future__ import annotations

from collections import deque

from handwork.tool.terminal_cells import Row, joined

_KEPT = 2000
"""Rows kept above the screen until they are read."""
_CLEAN = 1 << 60


class Grid:
    """The rows of a screen and those scrolled off above it. `x` and `y` are the cursor's place, from 0."""

    def __init__(self, columns: int, height: int) -> None:
        self.columns, self.height = columns, height
        self.full_screen = False
        """Whether the program draws on the second screen, as editors and pagers do."""
        self.rows = [Row() for _ in range(height)]
        self.x = self.y = 0
        self.saved = (0, 0)
        self.region = (0, height - 1)
        self.inserting = False
        self._first: list[Row] = []
        self._entered = (0, 0)
        self._above: deque[Row] = deque(maxlen=_KEPT)
        self._scrolled = 0
        self._dirty = _CLEAN
        """The first row, counted from the first one ever, that changed since the last look."""

    # ---- what is seen

    def fresh(self) -> tuple[str, int]:
        """What changed since the last time (on the second screen: all of it), and how many rows of it are lost."""
        dirty, self._dirty = self._dirty, _CLEAN
        if dirty == _CLEAN:
            return "", 0
        if self.full_screen:
            return self.shown(), 0
        oldest = self._scrolled - len(self._above)
        above = list(self._above)[max(dirty - oldest, 0) :]
        self._above.clear()
        return _text(above + self.rows[max(dirty - self._scrolled, 0) :]), max(oldest - dirty, 0)

    def shown(self) -> str:
        """The whole screen as it is now."""
        return _text(self.rows)

    @property
    def changed(self) -> bool:
        """Whether `fresh` has anything new."""
        return self._dirty != _CLEAN

    def wrap(self, width: int) -> None:
        """Go to the next row if so many columns have no room in this one."""
        if self.x + width > self.columns:
            self.rows[self.y].wrapped = True
            self.touch()
            self.line_feed()
            self.x = 0

    def put(self, cells: list[str]) -> None:
        """Write cells at the cursor and move it behind them."""
        row = self.rows[self.y]
        if self.inserting:
            row.insert(self.x, cells, self.columns)
        else:
            row.put(self.x, cells)
        self.x += len(cells)
        self.touch()

    def touch(self, y: int | None = None) -> None:
        """Note that a row (the cursor's, if none is named) has changed."""
        self._dirty = min(self._dirty, self._scrolled + (self.y if y is None else y))

    def line_feed(self) -> None:
        """One row down; at the end of the region it scrolls."""
        top, bottom = self.region
        if self.y == bottom:
            self.scroll_up(top, bottom)
        else:
            self.y = min(self.y + 1, self.height - 1)

    def scroll_up(self, top: int, bottom: int) -> None:
        gone = self.rows.pop(top)
        self.rows.insert(bottom, Row())
        if top == 0 and not self.full_screen:
            self._above.append(gone)
            self._scrolled += 1
            if bottom < self.height - 1:  # what stands below the region has not moved
                self.touch(bottom)
        else:
            self.touch(top)

    def scroll_down(self, top: int, bottom: int) -> None:
        del self.rows[bottom]
        self.rows.insert(top, Row())
        self.touch(top)

    def switch(self, on: bool) -> None:
        """Go to the second screen, or back from it to what was there before."""
        if on:
            self._first, self._entered = self.rows, (self.x, self.y)
            self.rows = [Row() for _ in range(self.height)]
        else:
            self.rows, (self.x, self.y) = self._first, self._entered
        self.full_screen = on
        self.region = (0, self.height - 1)
        self.touch()

    def move(self, x: int, y: int) -> None:
        """Set the cursor, within the screen."""
        self.x, self.y = min(max(x, 0), self.columns - 1), min(max(y, 0), self.height - 1)

    def by(self, x: int, y: int) -> None:
        """Move the cursor."""
        self.move(min(self.x, self.columns - 1) + x, self.y + y)

    def clear(self, start: int, end: int) -> None:
        """Empty these rows."""
        for y in range(start, end):
            if self.rows[y].cells:
                self.touch(y)
            self.rows[y] = Row()

    def erase_display(self, kind: int) -> None:
        """Erase from the cursor on (0), up to it (1), or all."""
        if kind == 0:
            self.erase_line(0)
            self.clear(self.y + 1, self.height)
        elif kind == 1:
            self.clear(0, self.y)
            self.erase_line(1)
        else:
            self.clear(0, self.height)

    def erase_line(self, kind: int) -> None:
        """The same within the cursor's row."""
        row, x = self.rows[self.y], min(self.x, self.columns - 1)
        if row.cells:
            self.touch()
        if kind != 1:
            row.wrapped = False
        row.blank(x if kind == 0 else 0, x + 1 if kind == 1 else self.columns)

    def erase_cells(self, count: int) -> None:
        """Erase so many cells from the cursor on."""
        self.rows[self.y].blank(self.x, self.x + count)
        self.touch()

    def shift_lines(self, count: int, insert: bool) -> None:
        """Put empty rows in at the cursor, or take rows out."""
        top, bottom = self.region
        if top <= self.y <= bottom:
            for _ in range(min(count, self.height)):
                del self.rows[bottom if insert else self.y]
                self.rows.insert(self.y if insert else bottom, Row())
            self.touch()

    def shift_cells(self, count: int, insert: bool) -> None:
        """Put empty cells in at the cursor, or take cells out."""
        row, count = self.rows[self.y], min(count, self.columns)
        if insert:
            row.insert(self.x, [" "] * count, self.columns)
        else:
            row.delete(self.x, count)
        self.touch()

    def scroll(self, count: int, up: bool) -> None:
        """Scroll the region."""
        for _ in range(min(count, self.height)):
            (self.scroll_up if up else self.scroll_down)(*self.region)

    def set_region(self, top: int, bottom: int) -> None:
        """Let only these rows scroll; the cursor goes home."""
        bottom = min(bottom, self.height - 1)
        if 0 <= top < bottom:
            self.region = top, bottom
            self.move(0, 0)

    def reset(self) -> None:
        """As after switching on."""
        self.clear(0, self.height)
        self.x = self.y = 0
        self.region, self.inserting = (0, self.height - 1), False


def _text(rows: list[Row]) -> str:
    return "\n".join(line.rstrip(" ") for line in joined(rows)).rstrip("\n")
