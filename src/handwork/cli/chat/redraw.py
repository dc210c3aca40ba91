"""The prompt's application: text goes above it without flicker, and a new width leaves nothing of the old drawing behind."""

from __future__ import annotations

import os
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.layout.screen import Screen

from handwork.cli.chat.output import Output

_REFLOWS_NOT = {"linux", "vt100", "vt220"}


class ChatApplication(Application[None]):
    """Erasing, what goes above, and the new drawing reach the terminal in one piece."""

    def __init__(self, output: Output, **options: Any) -> None:
        self._terminal = output
        self._above: list[str] = []
        self._columns = output.get_size().columns
        super().__init__(
            output=output,
            full_screen=False,
            erase_when_done=True,
            mouse_support=False,
            terminal_size_polling_interval=None,
            before_render=lambda _: self._begin_drawing(),
            after_render=lambda _: self._end_drawing(),
            **options,
        )
        self.ttimeoutlen = self.timeoutlen = 0.03  # Esc acts at once; Alt with a key arrives in one piece

    def print_above(self, text: str) -> None:
        """Put whole lines above the prompt, with the next drawing."""
        self._above.append(text)
        if self.is_running:
            self.invalidate()
        else:
            self._write_above()
            self._terminal.flush()

    def _begin_drawing(self) -> None:
        shown, columns = self.renderer.last_rendered_screen, self._terminal.get_size().columns
        resized = shown is not None and columns != self._columns
        shrinks = shown is not None and self._wanted() < shown.height
        if self.is_done or not (self._above or resized or shrinks):
            return
        self._terminal.held = True
        if shown is not None and columns < self._columns and _reflows():
            self._terminal.cursor_up(self._more_rows_above(shown, columns))
        self.renderer.erase(leave_alternate_screen=False)
        self._write_above()

    def _more_rows_above(self, shown: Screen, columns: int) -> int:
        """How many rows more the old drawing has above the cursor, since the terminal has broken its lines anew."""
        at = shown.get_cursor_position(self.layout.current_window)
        return sum((max(_width(shown, row), 1) - 1) // columns for row in range(at.y)) + at.x // columns

    def _wanted(self) -> int:
        size = self._terminal.get_size()
        return self.layout.container.preferred_height(size.columns, size.rows).preferred

    def _write_above(self) -> None:
        text, self._above = "".join(self._above), []
        self._terminal.write_raw(text.replace("\n", "\r\n"))

    def _end_drawing(self) -> None:
        self._columns = self._terminal.get_size().columns
        if self._terminal.held:
            self._terminal.held = False
            self._terminal.flush()

    def _on_resize(self) -> None:
        """Any drawing sees the new size, and may have come before the signal: so it is a drawing like others."""
        self._redraw()


def _width(screen: Screen, row: int) -> int:
    """Columns of a row that were written."""
    cells = screen.data_buffer[row]
    return max((place + cell.width for place, cell in cells.items() if cell.char != " "), default=0)


def _reflows() -> bool:
    """Whether the terminal breaks its lines anew when its width changes; nearly all do."""
    environ = os.environ
    if environ.get("TMUX"):
        return True
    return "XTERM_VERSION" not in environ and environ.get("TERM") not in _REFLOWS_NOT
