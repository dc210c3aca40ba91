"""A terminal as a person sees it: the rows on the screen and those that have scrolled away."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyte
from pyte.screens import HistoryScreen
from tests.cli.terminal import Terminal
from tests.support.strict_server import StrictServer

opened: list[Window] = []
"""What a test has opened, so that a failing one leaves no process behind."""


class Window(Terminal):
    """`shown` are the rows on the screen, `text` all rows that were ever finished with them, each without blanks at its end."""

    def __init__(self, process: asyncio.subprocess.Process, master: int) -> None:
        self._grid, self._stream = HistoryScreen(80, 24, history=5000), pyte.ByteStream()
        self._stream.attach(self._grid)
        super().__init__(process, master)
        opened.append(self)

    @classmethod
    async def chat(
        cls, server: StrictServer | None, *arguments: str, cwd: Path, rows: int = 24, columns: int = 80, **environ: str
    ) -> Window:
        """`handwork` on a terminal, ready for the first input."""
        model = ("--base-url", server.url, "--model", "openai:any") if server else ()
        environ = {"XTERM_VERSION": "XTerm(390)", "TMUX": ""} | environ  # the grid does not break its lines anew
        window = await cls.run(*arguments, *model, cwd=cwd, rows=rows, columns=columns, **environ)
        window._grid.resize(rows, columns)
        await window.shows("openai:any" if server else "> ")
        return window

    def _take(self, data: bytes) -> None:
        super()._take(data)
        self._stream.feed(data)

    @property
    def shown(self) -> list[str]:
        return [row.rstrip() for row in self._grid.display]

    @property
    def text(self) -> str:
        columns = self._grid.columns
        above = ("".join(row[place].data for place in range(columns)).rstrip() for row in self._grid.history.top)
        return "\n".join([*above, *self.shown]).rstrip()

    @property
    def status(self) -> str:
        """The last row that is written."""
        return next((row for row in reversed(self.shown) if row), "")

    @property
    def prompt(self) -> str:
        """What stands in the prompt."""
        rows = [row for row in self.shown if row.startswith((">", "?"))]
        return rows[-1] if rows else ""

    async def shows(self, text: str, times: int = 1) -> None:
        """Wait until this stands on the screen, or has scrolled away."""
        await self.until(lambda: self.text.count(text) >= times, text)

    async def until(self, condition: Callable[[], Any], what: str = "") -> None:
        """Wait until something holds of the screen."""
        try:
            async with asyncio.timeout(30):
                while not condition():
                    if self.process.returncode is not None:
                        self._drain()
                        if condition():
                            return
                        raise AssertionError(f"the chat has ended without {what!r}:\n{self.text}")
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"never seen: {what!r}\n{self.text}") from None

    async def send(self, text: str) -> None:
        """Type a line and send it."""
        self.type(f"{text}\r")

    def resize(self, rows: int, columns: int) -> None:
        self._grid.resize(rows, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def hang_up(self) -> None:
        """The terminal is gone."""
        self._loop.remove_reader(self._master)
        os.close(self._master)

    async def leave(self) -> int:
        self.type("\x04")
        return await self.end()
