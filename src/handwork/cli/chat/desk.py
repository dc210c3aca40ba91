"""Prompt and chat brought together: who gets the keys, and in which order all is begun and ended."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from handwork.cli.chat.complete import ChatCompleter
from handwork.cli.chat.face import Face
from handwork.cli.chat.history import HistoryFile
from handwork.cli.chat.status import shortened, status_line
from handwork.cli.options import RunOptions
from handwork.config import Settings

_PATIENCE = 1.0
"""Seconds that killing what runs may take after the second Ctrl-C."""


class Desk:
    """Owns the prompt; what is typed before the chat is there is kept for it."""

    def __init__(self, options: RunOptions, settings: Settings) -> None:
        self._options, self._settings = options, settings
        self._folder = options.folder
        self._commands: dict[str, str] = {}
        history = HistoryFile(settings.home.data / "chat_history")
        self.face = Face(self, history=history, completer=ChatCompleter(self._commands, lambda: self._folder))
        self._chat: Any = None
        self._early: list[str] = []
        self._left = self._killed = False

    # ---- what the prompt asks

    def submit(self, text: str) -> None:
        if self._chat is None:
            self._early.append(text)
        else:
            self._chat.submit(text)

    def queued(self) -> list[str]:
        return self._early if self._chat is None else list(self._chat.queued())

    def interrupt(self) -> bool:
        return self._chat is not None and bool(self._chat.interrupt())

    def kill(self) -> bool:
        if self._chat is None or not self._chat.busy.stopping:
            return False
        self._killed = True
        self.face.close()
        return True

    def leave(self) -> None:
        self._left = True
        if self._chat is not None:
            self._chat.leave()
        else:
            self.face.close()

    def status(self, columns: int) -> str:
        parts = self._chat.conversation.facts() if self._chat is not None else []
        return status_line(parts or [(5, shortened(self._folder))], columns)

    # ---- life

    async def run(self, banner: str) -> int:
        """From the first drawing to the last line; the exit code. Raises HandworkError for what cannot be begun."""
        self.face.screen.line(banner, "dim")
        prompt = asyncio.ensure_future(self.face.run())
        work = asyncio.ensure_future(self._work())
        with _told_to_end(self.leave):
            try:
                await asyncio.wait({prompt, work}, return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    await self._prompt_is_gone(work)
                work.result()
            finally:
                self.face.close()
                await asyncio.gather(prompt, return_exceptions=True)
                if self._chat is not None:
                    await self._chat.conversation.close()
        if prompt.exception() is not None and not isinstance(prompt.exception(), EOFError):
            prompt.result()
        self._say_goodbye()
        return 0

    async def _work(self) -> None:
        chat_class, commands = await asyncio.to_thread(_loaded)
        if self._left:
            return
        self._commands.update(commands)
        from handwork.cli.chat.doors import ChatDoors

        chat = chat_class(self._options, self._settings, self.face, ChatDoors(self.face))
        self._chat = chat
        await chat.open()
        self._folder = chat.conversation.workspace
        early, self._early = self._early, []
        for text in early:
            chat.submit(text)
        await chat.serve()

    async def _prompt_is_gone(self, work: asyncio.Future[None]) -> None:
        """The terminal has gone, or the human has had enough of waiting."""
        if self._killed:
            with suppress(TimeoutError, OSError):
                await asyncio.wait_for(self._chat.conversation.close(), _PATIENCE)
            os._exit(130)
        if self._chat is None:
            work.cancel()
        else:
            self._chat.leave()
        await asyncio.wait({work})

    def _say_goodbye(self) -> None:
        if self._chat is not None and self._chat.talked:
            self.face.screen.line("The conversation is kept. To go on with it here: handwork -c", "dim")


def _loaded() -> tuple[Any, dict[str, str]]:
    """The chat's class and its commands: with them come the agent, the model and the store, which takes a moment."""
    from handwork.cli.chat.chat import Chat
    from handwork.cli.chat.commands import COMMANDS

    return Chat, {f"/{name}": command.meaning for name, command in COMMANDS.items()}


@contextmanager
def _told_to_end(leave: Any) -> Iterator[None]:
    """SIGTERM and SIGHUP end the chat in good order."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, leave)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
