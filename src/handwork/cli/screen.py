"""Where progress is drawn: standard error, as a terminal with colours and a spinner or as plain lines."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from handwork.cli.clean import one_line
from handwork.cli.columns import wrapped

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
BEAT = 0.1


class Screen:
    """Plain lines for a log or a pipe; the base of the terminal's screen. All text given must be clean already.

    `live` says that somebody watches text as it arrives.
    """

    live = False

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held: list[tuple[str, str]] | None = None

    @property
    def columns(self) -> int:
        """The width that folded text is cut to."""
        return 100

    def line(self, text: str = "", style: str = "") -> None:
        """Write text and end the line; where somebody watches, no word is broken at the edge."""
        self.write(self._in_width(text) + "\n", style)

    def _in_width(self, text: str) -> str:
        return wrapped(text, self.columns) if self.live else text

    def write(self, text: str, style: str = "") -> None:
        """Write text where the last one ended."""
        if self._held is not None:
            self._held.append((text, style))
        else:
            self._draw(text, style)

    def say(self, text: str) -> None:
        """Write a piece of the model's answer; pieces may end anywhere."""
        self.write(text)

    def said(self) -> None:
        """The answer that was being written has ended, and its last line with it."""

    def wait(self, what: str) -> None:
        """Show that something is being waited for; '' ends it. Only terminals do."""

    @contextmanager
    def asking(self) -> Iterator[Callable[[str, str], None]]:
        """Keep the screen for a question: yields how it writes; what others write meanwhile is drawn afterwards."""
        self.wait("")
        self._held = []
        try:
            yield lambda text, style: self._draw(self._in_width(text), style)
        finally:
            held, self._held = self._held, None
            for text, style in held:
                self._draw(text, style)

    def _draw(self, text: str, style: str = "") -> None:
        self._stream.write(text)
        self._stream.flush()


class TerminalScreen(Screen):
    """A terminal: colours unless NO_COLOR is set, and a spinner below what was written."""

    live = True

    def __init__(self, stream: TextIO, *, spins: bool = True) -> None:
        from rich.console import Console

        super().__init__(stream)
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._spins = spins and not self._console.is_dumb_terminal
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

    def _draw(self, text: str, style: str = "") -> None:
        from rich.text import Text

        what, since = self._what, self._since
        self.wait("")
        self._console.print(Text(text, style=style), end="")
        if what and text.endswith("\n"):
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


def open_screen(stream: TextIO | None = None, *, spins: bool = True) -> Screen:
    """The screen for a stream, standard error unless given. A spinner needs a running event loop."""
    stream = stream or sys.stderr
    return TerminalScreen(stream, spins=spins) if is_terminal(stream) else Screen(stream)


def columns_of(stream: TextIO) -> int:
    """The width of the terminal behind a stream."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return max(columns or shutil.get_terminal_size().columns, 20)


def in_width(text: str, stream: TextIO) -> str:
    """The text as it is written to a stream: broken between words if that is a terminal."""
    return wrapped(text, columns_of(stream)) if is_terminal(stream) else text


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is at this end of the stream."""
    try:
        return stream is not None and not stream.closed and os.isatty(stream.fileno())
    except (OSError, ValueError):
        return False
