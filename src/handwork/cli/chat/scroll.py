"""What chat shows: finished lines go above the prompt for good, what is still being written stays below them."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth
from rich.console import Console, RenderableType
from rich.text import Text

from handwork.cli.chat.output import Output
from handwork.cli.clean import one_line
from handwork.cli.lines import BEAT, FRAMES, Screen
from handwork.cli.markdown import Markdown


class Scroll(Screen):
    """A screen above a prompt. `print_above` puts text in ANSI there; `changed` has the part below drawn anew."""

    live = True

    def __init__(self, output: Output, print_above: Callable[[str], None], changed: Callable[[], None]) -> None:
        super().__init__(io.StringIO())
        self._output, self._print_above, self._changed = output, print_above, changed
        self._paper = io.StringIO()
        self._console = Console(
            file=self._paper, force_terminal=True, highlight=False, markup=False, emoji=False, soft_wrap=True
        )
        self._line: list[tuple[str, str]] = []
        self._answer: Markdown | None = None
        self._rest = ""
        self._what = ""
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def columns(self) -> int:
        return self._output.get_size().columns

    # ---- above

    def draw(self, renderable: RenderableType) -> None:
        """Put anything that rich can draw above the prompt."""
        self._console.width = self.columns
        self._console.print(renderable, soft_wrap=isinstance(renderable, Text))
        self._take_paper()

    def _draw(self, text: str, style: str = "") -> None:
        *lines, rest = text.split("\n")
        for line in lines:
            whole = Text.assemble(*self._line, (line, style))
            self._line = []
            self._console.print(whole)
        if rest:
            self._line.append((rest, style))
        self._take_paper()

    def _take_paper(self) -> None:
        if drawn := self._paper.getvalue():
            self._paper.seek(0)
            self._paper.truncate()
            self._print_above(drawn)
        self._changed()

    def end_line(self) -> None:
        """Finish a line that was begun."""
        if self._line:
            self.line()

    # ---- the model's answer

    def say(self, text: str) -> None:
        if self._held is not None:  # a question is open: the words come after it
            self._held.append((text, ""))
            return
        if self._answer is None:
            self._answer = Markdown(self.columns)
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            for drawing in self._answer.feed(line):
                self.draw(drawing)
        self._changed()

    def said(self) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            return
        rest, self._rest = self._rest, ""
        for drawing in [*(answer.feed(rest) if rest else ()), *answer.finish()]:
            self.draw(drawing)

    # ---- below

    def wait(self, what: str) -> None:
        if what == self._what or self._held is not None:
            return
        if not self._what:
            self._since = time.monotonic()
        self._what = what
        if what and self._timer is None:
            self._turn()
        elif not what and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._changed()

    def _turn(self) -> None:
        self._changed()
        self._timer = asyncio.get_running_loop().call_later(BEAT, self._turn)

    def below(self, rows: int) -> StyleAndTextTuples:
        """What is still being written, its last rows, and what is being waited for; each row ends with a newline."""
        columns = self.columns
        shown: list[tuple[str, str]] = []
        begun = [*(self._answer.held if self._answer else ()), *([self._rest] if self._rest else [])]
        shown += [("", row) for line in begun for row in _rows(line, columns)]
        if self._line:
            shown += [("class:dim", row) for row in _rows("".join(text for text, _ in self._line), columns)]
        shown = shown[-rows:]
        if self._what:
            passed = time.monotonic() - self._since
            frame = FRAMES[int(passed / BEAT) % len(FRAMES)]
            seconds = f" ({int(passed)} s)" if passed >= 1 else ""
            shown.append(("class:wait", one_line(f"{frame} {self._what}", columns - 10) + seconds))
        return [(style, f"{text}\n") for style, text in shown]


def _rows(line: str, columns: int) -> list[str]:
    """A line in pieces that fit the width."""
    line = line.expandtabs(4)
    if len(line) * 2 < columns:
        return [line]
    rows, row, width = [], "", 0
    for char in line[-8192:]:  # nobody sees more of it than the last rows
        wide = get_cwidth(char)
        if width + wide > columns:
            rows.append(row)
            row, width = "", 0
        row, width = row + char, width + wide
    return [*rows, row]
