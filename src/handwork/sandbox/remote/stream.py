"""The stream to where a sandbox runs, as its backends give it: bytes both ways, room, and an end."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable

from handwork.sandbox.remote.boot import Boot, Greeting

_KEPT = 8192
_LONGEST_GREETING = 65536


class Stream(ABC):
    """Used from one event loop. What comes goes to `hear`; `held` is told when there is no room to write, and when there is
    some again; `lost` that the stream has ended. `said` is the last that came beside it: what went wrong over there."""

    def __init__(self) -> None:
        self.said = b""
        self.over = False
        self.hear: Callable[[bytes], object] = lambda data: None
        self.held: Callable[[bool], object] = lambda held: None
        self.lost: Callable[[], object] = lambda: None

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Queue bytes; nothing happens when the stream has ended."""

    @abstractmethod
    def pause(self, paused: bool) -> None:
        """Read nothing for now, or go on."""

    @abstractmethod
    def close(self) -> None:
        """End it; the other side notices. `lost` is not called."""

    def _note(self, data: bytes) -> None:
        self.said = (self.said + data)[-_KEPT:]

    def _lose(self) -> None:
        if not self.over:
            self.over = True
            self.lost()


async def greet(stream: Stream, boot: Boot) -> tuple[Greeting, bytes]:
    """Wait for the greeting, answer it with our parts, and return it, with what came after it.

    Raises EOFError when the stream ends before; what else came is in `stream.said`.
    """
    heard = bytearray()
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def hear(data: bytes) -> None:
        heard.extend(data)
        start = heard.find(boot.greeting)
        complete = start >= 0 and heard.find(b"\n", start) >= 0
        if not done.done() and (complete or len(heard) > _LONGEST_GREETING):
            done.set_result(None)

    def lost() -> None:
        if not done.done():
            done.set_result(None)

    stream.hear, stream.lost = hear, lost
    if stream.over:
        lost()
    await done
    before, found, rest = bytes(heard).partition(boot.greeting)
    line, ended, after = rest.partition(b"\n")
    if not found or not ended:
        stream.said += before[-_KEPT:]
        raise EOFError
    try:
        greeting = Greeting.read(line)
    except ValueError as error:
        raise EOFError from error
    stream.write(boot.payload)
    return greeting, after
