"""Prompt and chat brought together: who gets the keys, and in which order all is begun and ended."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handwork.cli.chat.complete import ChatCompleter
from handwork.cli.chat.face import Face
from handwork.cli.chat.history import HistoryFile
from handwork.cli.chat.status import status_line

_PATIENCE = 1.0
"""Seconds that killing what runs may take after the second Ctrl-C."""


class Desk:
    """Owns the prompt; what is typed before the chat is there is kept for it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._folder = Path()
        self._commands: dict[str, str] = {}
        self.face = Face(self, ChatCompleter(self._commands, lambda: self._folder, self._prompts))
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

    def _prompts(self) -> Mapping[str, str]:
        """The prompts of MCP servers; asked for in a thread, while somebody types."""
        found: Mapping[str, str] = self._chat.prompts() if self._chat is not None else {}
        return found

    def status(self, columns: int) -> str:
        parts = self._chat.conversation.facts() if self._chat is not None else []
        return status_line(parts or [(1, "getting ready …")], columns)

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
        parts = await asyncio.to_thread(_loaded, self._make)
        if self._left:
            return
        self._commands.update(parts.commands)
        self.face.remember(HistoryFile(parts.settings.home.data / "chat_history"))
        self._chat = chat = parts.chat(parts.options, parts.settings, self.face, parts.doors(self.face))
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
            self._say_goodbye()
            os._exit(130)
        if self._chat is None:
            work.cancel()
        else:
            self._chat.leave()
        await asyncio.wait({work})

    def _say_goodbye(self) -> None:
        if self._chat is not None and (text := self._chat.goodbye()):
            self.face.screen.line(text, "dim")


@dataclass(frozen=True)
class _Parts:
    options: Any
    settings: Any
    chat: Any
    doors: Any
    commands: dict[str, str]


def _loaded(make: Callable[[], Any]) -> _Parts:
    """What stands behind the prompt: with it come the agent, the model and the store, which takes a moment."""
    options = make()
    settings = settings_of(options)
    from handwork.cli.chat.chat import Chat
    from handwork.cli.chat.commands import COMMANDS
    from handwork.cli.chat.doors import ChatDoors

    return _Parts(options, settings, Chat, ChatDoors, {f"/{name}": one.meaning for name, one in COMMANDS.items()})


def settings_of(options: Any) -> Any:
    """The settings of a chat. Raises ConfigError for what cannot be one."""
    options.images()  # one that cannot be used is said now
    return options.settings()


@contextmanager
def _told_to_end(leave: Callable[[], None]) -> Iterator[None]:
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
