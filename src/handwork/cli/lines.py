"""Plain lines: what every screen can do, and what is known of the stream below it."""

from __future__ import annotations

import codecs
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from handwork.cli.columns import wrapped

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
BEAT = 0.1


class Screen:
    """Plain lines for a log or a pipe; the base of the other screens. All text given must be clean already.

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


def knows_marks(stream: TextIO) -> bool:
    """Whether the stream's encoding has the marks and frames that we draw."""
    try:
        return codecs.lookup(stream.encoding or "ascii").name.startswith("utf")
    except (AttributeError, LookupError):
        return False


def columns_of(stream: TextIO) -> int:
    """The width of the terminal behind a stream."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return max(columns or shutil.get_terminal_size().columns, 20)
