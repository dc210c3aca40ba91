"""A person's patience with what one server asks: one question at a time, and no more of them once they cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

_MOST = 8
"""Questions of one server that wait for their turn."""


class Impatient(Exception):
    """The question is not put: it was cancelled before it was asked."""


class Patience:
    """`wanted` says whether anything is asked of the server just now: nobody is disturbed out of the blue."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._lost = False

    def begins(self) -> None:
        """Something is asked of the server, after a time in which nothing was: it may ask again."""
        self._lost = False

    def lose(self) -> None:
        """The person cancelled; nothing more is put to them while the server works on what it was asked for then."""
        self._lost = True

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The turn of one question. Raises Impatient."""
        if self._waiting >= _MOST:
            raise Impatient
        self._waiting += 1
        try:
            async with self._turn:
                if self._lost or not self._wanted():
                    raise Impatient
                yield
        finally:
            self._waiting -= 1
