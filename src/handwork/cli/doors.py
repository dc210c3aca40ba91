"""The two doors to the human at the terminal: questions and approvals."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Callable
from functools import partial
from typing import TextIO

from handwork.cli.approval import decide
from handwork.cli.clean import clean_for_terminal
from handwork.cli.lines import Screen
from handwork.cli.screen import is_terminal
from handwork.errors import Waiting
from handwork.schema import Approval, ApprovalRequest, Question

_ROWS = 24


class TerminalDoors:
    """Asks on a screen and reads lines of a terminal, without stopping anything else."""

    def __init__(self, screen: Screen, source: TextIO) -> None:
        self._screen, self._source = screen, source

    @classmethod
    def open(cls, screen: Screen) -> TerminalDoors | None:
        """Doors if a person can read what is asked and answer it, else None (headless)."""
        if is_terminal(sys.stdin) and is_terminal(sys.stderr):
            return cls(screen, sys.stdin)
        return None

    async def ask(self, question: Question) -> str:
        """The human's answer. Raises Waiting at the end of input (Ctrl-D)."""
        with self._screen.asking() as write:
            write(f"? {clean_for_terminal(question.text)}\n", "bold magenta")
            return await self._line(write, "> ")

    async def approve(self, request: ApprovalRequest) -> Approval:
        """The human's decision about exactly what is shown. Raises Waiting at the end of input."""
        rows = rows_of(self._source)
        with self._screen.asking() as write:
            return await decide(request, write, partial(self._line, write), columns=self._screen.columns, rows=rows)

    async def read_line(self, prompt: str, *, fresh: bool) -> str:
        """A line of the terminal; `fresh`: one that is typed from now on. Raises Waiting at the end of input."""
        with self._screen.asking() as write:
            return await self._line(write, prompt, fresh=fresh)

    async def _line(self, write: Callable[[str, str], None], prompt: str, *, fresh: bool = True) -> str:
        descriptor = self._source.fileno()
        if fresh:
            termios.tcflush(descriptor, termios.TCIFLUSH)  # what was typed before the question is no answer to it
        write(prompt, "")
        loop = asyncio.get_running_loop()
        read = bytearray()
        while not read.endswith(b"\n"):
            ready: asyncio.Future[None] = loop.create_future()
            loop.add_reader(descriptor, _set, ready)
            try:
                await ready
            except asyncio.CancelledError:  # withdrawn: what is written next has a line of its own
                write("\n", "")
                raise
            finally:
                loop.remove_reader(descriptor)
            piece = os.read(descriptor, 65536)
            if not piece and not read:
                write("\n", "")
                raise Waiting("No answer was given: the input has ended")
            if not piece:
                break
            read += piece
        return read.decode(errors="replace").rstrip("\r\n")


def rows_of(stream: TextIO) -> int:
    """The height of the terminal behind a stream."""
    try:
        return os.get_terminal_size(stream.fileno()).lines or _ROWS
    except (OSError, ValueError):
        return _ROWS


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
