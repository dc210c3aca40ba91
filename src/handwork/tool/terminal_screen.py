"""A terminal: what a program writes to it, drawn on a screen in memory, and what it answers to the program's questions."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from handwork.tool.terminal_cells import width_of
from handwork.tool.terminal_grid import Grid

COLUMNS, ROWS = 100, 30
_PARTS = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?:\x1b\[|\x9b)(?P<given>[0-?]*)(?P<between>[ -/]*)(?P<final>[@-~])"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|\Z)"  # titles, links, questions in strings
    r"|\x1b(?P<slot>[()*+])(?P<charset>.)"
    r"|\x1b[ #%].|\x1b(?P<escape>[0-~])"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])",
    re.DOTALL,
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{0,4000}\x1b?|[()*+ #%])?\Z")
_LINE_DRAWING = dict(zip("`aflmnqjktuvwxyz{|}~", "◆▒°┌└┼─┘┐├┤┴┬│≤≥π≠£·", strict=True))
_SECOND_SCREEN = (47, 1047, 1049)


class Screen:
    """Takes in what a program writes to its terminal; `replies` is what is to be written back to it."""

    def __init__(self, columns: int = COLUMNS, rows: int = ROWS) -> None:
        self.grid = Grid(columns, rows)
        self.replies = b""
        self._drawing = [False, False]
        self._shift = 0
        self._last = " "
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> None:
        """Take more bytes in."""
        text = self._rest + self._decoder.decode(data)
        cut = match.start() if (match := _UNFINISHED.search(text)) else len(text)
        self._rest = text[cut:]
        for part in _PARTS.finditer(text, 0, cut):
            if part["text"]:
                self._print(part["text"])
            elif part["control"]:
                self._control(part["control"])
            elif part["final"]:
                self._sequence(part["final"], part["given"], part["between"])
            elif part["escape"]:
                self._escape(part["escape"])
            elif part["slot"] and part["slot"] in "()":
                self._drawing["()".index(part["slot"])] = part["charset"] == "0"

    def _print(self, text: str) -> None:
        if self._drawing[self._shift]:
            text = "".join(_LINE_DRAWING.get(character, character) for character in text)
        self._last = text[-1]
        grid = self.grid
        if not text.isascii() or grid.inserting:
            for character in text:
                self._print_one(character)
            return
        while text:
            grid.wrap(1)
            room = grid.columns - grid.x
            grid.put(list(text[:room]))
            text = text[room:]

    def _print_one(self, character: str) -> None:
        width, grid = width_of(character), self.grid
        if width == 0:
            cells = grid.rows[grid.y].cells
            if 0 < grid.x <= len(cells) and len(cells[grid.x - 1]) < 16:
                cells[grid.x - 1] += character
            return
        grid.wrap(width)
        grid.put([character, ""][:width])

    def _control(self, character: str) -> None:
        grid = self.grid
        if character in "\n\v\f":
            grid.line_feed()
        elif character == "\r":
            grid.x = 0
        elif character == "\b":
            grid.by(-1, 0)
        elif character == "\t":
            grid.x = min((grid.x // 8 + 1) * 8, grid.columns - 1)
        elif character in "\x0e\x0f":
            self._shift = int(character == "\x0e")

    def _escape(self, character: str) -> None:
        grid = self.grid
        if character == "7":
            grid.saved = grid.x, grid.y
        elif character == "8":
            grid.move(*grid.saved)
        elif character in "DE":
            grid.line_feed()
            grid.x = 0 if character == "E" else grid.x
        elif character == "M" and grid.y == grid.region[0]:
            grid.scroll_down(*grid.region)
        elif character == "M":
            grid.by(0, -1)
        elif character == "c":
            grid.reset()
            self._drawing = [False, False]

    def _sequence(self, final: str, given: str, between: str) -> None:
        numbers = [int(n) if n.isdigit() and len(n) < 6 else 0 for n in given.lstrip("<=>?").split(";")]
        private = given[:1] if given[:1] in "<=>?" else ""
        if final in "hl" and private in ("", "?"):
            self._mode(numbers, private, final == "h")
        elif final in "cn":
            self._reply(final, private, numbers[0])
        elif final == "b" and not private:
            self._print(self._last * min(max(numbers[0], 1), self.grid.columns))
        elif final in _ACTIONS and not private and not between:
            _ACTIONS[final](self.grid, max(numbers[0], 1), numbers)

    def _mode(self, numbers: list[int], private: str, on: bool) -> None:
        for number in numbers:
            if private and number in _SECOND_SCREEN and on != self.grid.full_screen:
                self.grid.switch(on)
            elif not private and number == 4:
                self.grid.inserting = on

    def _reply(self, final: str, private: str, number: int) -> None:
        """Some programs ask where the cursor is, or who we are, and wait for the answer."""
        grid = self.grid
        if final == "n" and not private:
            place = b"\x1b[%d;%dR" % (grid.y + 1, min(grid.x, grid.columns - 1) + 1)
            self.replies += {5: b"\x1b[0n", 6: place}.get(number, b"")
        elif final == "c":
            self.replies += {"": b"\x1b[?1;2c", ">": b"\x1b[>0;10;1c"}.get(private, b"")


_Action = Callable[[Grid, int, list[int]], None]
_ACTIONS: dict[str, _Action] = {
    "A": lambda grid, count, _: grid.by(0, -count),
    "B": lambda grid, count, _: grid.by(0, count),
    "e": lambda grid, count, _: grid.by(0, count),
    "C": lambda grid, count, _: grid.by(count, 0),
    "a": lambda grid, count, _: grid.by(count, 0),
    "D": lambda grid, count, _: grid.by(-count, 0),
    "E": lambda grid, count, _: grid.move(0, grid.y + count),
    "F": lambda grid, count, _: grid.move(0, grid.y - count),
    "G": lambda grid, count, _: grid.move(count - 1, grid.y),
    "`": lambda grid, count, _: grid.move(count - 1, grid.y),
    "d": lambda grid, count, _: grid.move(grid.x, count - 1),
    "H": lambda grid, count, numbers: grid.move((numbers[1:] or [1])[0] - 1, count - 1),
    "f": lambda grid, count, numbers: grid.move((numbers[1:] or [1])[0] - 1, count - 1),
    "J": lambda grid, _, numbers: grid.erase_display(numbers[0]),
    "K": lambda grid, _, numbers: grid.erase_line(numbers[0]),
    "X": lambda grid, count, _: grid.erase_cells(count),
    "L": lambda grid, count, _: grid.shift_lines(count, True),
    "M": lambda grid, count, _: grid.shift_lines(count, False),
    "@": lambda grid, count, _: grid.shift_cells(count, True),
    "P": lambda grid, count, _: grid.shift_cells(count, False),
    "S": lambda grid, count, _: grid.scroll(count, True),
    "T": lambda grid, count, _: grid.scroll(count, False),
    "r": lambda grid, count, numbers: grid.set_region(count - 1, ((numbers[1:] or [0])[0] or grid.height) - 1),
    "s": lambda grid, *_: setattr(grid, "saved", (grid.x, grid.y)),
    "u": lambda grid, *_: grid.move(*grid.saved),
}
