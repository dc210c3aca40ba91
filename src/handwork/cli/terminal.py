"""A terminal as a screen: colours, Markdown drawn as it arrives, and a spinner."""

from __future__ import annotations

import asyncio
import time
from typing import TextIO

from rich.console import Console, RenderableType
from rich.text import Text

from handwork.cli.clean import one_line
from handwork.cli.columns import ending
from handwork.cli.lines import BEAT, FRAMES, Screen, columns_of, knows_marks
from handwork.cli.markdown import Markdown


class TerminalScreen(Screen):
    """A terminal: colours and drawn Markdown unless NO_COLOR is set, and a spinner below what was written."""

    live = True

    def __init__(self, stream: TextIO, *, spins: bool = True) -> None:
        super().__init__(stream)
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._spins = spins and not self._console.is_dumb_terminal
        self._draws = not (self._console.is_dumb_terminal or self._console.no_color) and knows_marks(stream)
        self._answer: Markdown | None = None
        self._rest = ""
        self._what = ""
        self._since = 0.0
        self._frame = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def columns(self) -> int:
        return columns_of(self._stream)

    def wait(self, what: str) -> None:
        if not self._spins or what == self._what or self._held is not None:
            return
        if not what:
            self._erase()
        elif not self._what:
            self._since, self._frame = time.monotonic(), 0
        self._what = what
        if what and self._timer is None:
            self._turn()

    def say(self, text: str) -> None:
        if not self._draws or self._held is not None:
            super().say(text)
            return
        answer = self._answer = self._answer or Markdown(self.columns)
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            for drawing in answer.feed(line):
                self._print(drawing)
        if begun := self._rest or "".join(answer.held[-1:]):
            self.wait(ending(begun, self.columns - 16))

    def said(self) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            return
        rest, self._rest = self._rest, ""
        self.wait("")
        for drawing in [*(answer.feed(rest) if rest else ()), *answer.finish()]:
            self._print(drawing)

    def _draw(self, text: str, style: str = "") -> None:
        self._print(Text(text, style=style), end="")

    def _print(self, drawing: RenderableType, end: str = "\n") -> None:
        what, since = self._what, self._since
        self.wait("")
        is_text = isinstance(drawing, Text)
        self._console.print(drawing, end=end, soft_wrap=is_text, width=self.columns)
        if what and (end or str(drawing).endswith("\n")):
            self.wait(what)
            self._since = since

    def _turn(self) -> None:
        seconds = int(time.monotonic() - self._since)
        text = one_line(f"{FRAMES[self._frame % len(FRAMES)]} {self._what}", self.columns - 12)
        self._stream.write(f"\r\x1b[2K{text}{f' ({seconds} s)' if seconds else ''}")
        self._stream.flush()
        self._frame += 1
        self._timer = asyncio.get_running_loop().call_later(BEAT, self._turn)

    def _erase(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
