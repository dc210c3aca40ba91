"""The two doors to the human at the terminal: questions and approvals."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Callable
from typing import TextIO

from handwork.cli.calls import exactly
from handwork.cli.clean import clean_for_terminal, one_line
from handwork.cli.lines import Screen
from handwork.cli.screen import is_terminal
from handwork.errors import Waiting
from handwork.schema import Approval, ApprovalRequest, Question

_CHOICES = "Run it? [y]es, [a]lways in this session, [n]o (or say why not): "


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
        with self._screen.asking() as write:
            write(
                f"? {one_line(request.call.function.name, 80)} wants to run – {clean_for_terminal(request.why)}\n",
                "bold magenta",
            )
            write("".join(f"  │ {row}\n" for row in exactly(request.call).split("\n")), "")
            while True:
                decision = decision_of(await self._line(write, _CHOICES))
                if decision is not None:
                    return decision

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


def decision_of(answer: str) -> Approval | None:
    """What was typed at an approval: yes, always, no, or the reason for a no; None for nothing."""
    match answer.strip().lower():
        case "":
            return None
        case "y" | "yes":
            return Approval(decision="allow")
        case "a" | "always":
            return Approval(decision="allow_session")
        case "n" | "no":
            return Approval(decision="deny")
    return Approval(decision="deny", reason=answer.strip())


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
