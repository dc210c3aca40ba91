"""A chat line by line, for terminals that cannot do more."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from handwork.cli.chat import talk
from handwork.cli.chat.chat import Chat
from handwork.cli.chat.commands import LEAVING
from handwork.cli.chat.desk import settings_of
from handwork.cli.doors import TerminalDoors
from handwork.cli.lines import Screen
from handwork.cli.options import RunOptions
from handwork.cli.screen import open_screen
from handwork.errors import Waiting

_PATIENCE = 1.0


class _Lines:
    """The prompt of such a terminal; what is to be edited again cannot be, and is said to be unsent."""

    has_keys = False

    def __init__(self, screen: Screen) -> None:
        self.screen = screen

    def say(self, hint: str) -> None:
        self.screen.line(hint, "yellow")

    def refresh(self) -> None:
        """There is no line of facts."""

    def restore(self, text: str) -> None:
        self.screen.line(f"Not sent: {text}", "dim")


async def chat_in_lines(make: Callable[[], RunOptions], banner: str) -> int:
    """Read a line, work on it, and so on until the input ends; the exit code."""
    options = make()
    settings = settings_of(options)
    screen = open_screen(sys.stdout, spins=False)
    doors = TerminalDoors(screen, sys.stdin)
    chat = Chat(options, settings, _Lines(screen), doors)
    screen.line(banner.replace("Esc", "Ctrl-C"))
    loop, main = asyncio.get_running_loop(), asyncio.current_task()
    ends: list[asyncio.Task[None]] = []

    def interrupted() -> None:
        if chat.busy.stopping:
            ends.append(loop.create_task(_end_now(chat)))
        elif not chat.interrupt() and main is not None:
            main.cancel()

    loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        await chat.open()
        if first := options.task:
            talk.said(screen, first)
        while (text := first or await _line(doors)) is not None and text.strip().lower() not in LEAVING:
            first = None
            if text.strip():
                await chat.turn(text)
    except asyncio.CancelledError:
        screen.line()
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        await chat.conversation.close()
    if text := chat.goodbye():
        screen.line(text)
    return 0


async def _line(doors: TerminalDoors) -> str | None:
    """One input: a line, and those that follow a backslash at its end."""
    lines: list[str] = []
    with suppress(Waiting):
        while True:
            line = await doors.read_line("> " if not lines else "  ", fresh=False)
            lines.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                return "\n".join(lines)
    return "\n".join(lines) if lines else None


async def _end_now(chat: Chat) -> None:
    with suppress(TimeoutError, OSError):
        await asyncio.wait_for(chat.conversation.close(), _PATIENCE)
    os._exit(130)
