"""Group commit: the sessions that reach a gate in one turn of the loop share a transaction, and its error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from copy import copy
from typing import Generic, TypeVar

from handwork.errors import JournalError
from handwork.store.faults import StoreLocked

Writer = TypeVar("Writer")

_FIRST_WAIT, _LONGEST_WAIT = 0.001, 0.05
PATIENCE = 10.0
"""Seconds that a commit waits for another process's transaction before it gives up with an error."""


class Gate(Generic[Writer]):
    """Collects who waits at a gate and writes for all of them at once.

    `write` is synchronous: it returns when everything of these writers is on disk, or raises JournalError with nothing
    written. While another process holds the file the gate tries again from the loop, so the loop is never blocked for long.
    """

    def __init__(self, write: Callable[[Collection[Writer]], None]) -> None:
        self._write = write
        self._waiting: dict[Writer, list[asyncio.Future[None]]] = {}
        self._timer: asyncio.Handle | None = None
        self._until = self._wait = 0.0

    async def pass_through(self, writer: Writer) -> None:
        """Wait until the writer's rows are on disk. Cancelling the wait does not take them out of the transaction."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.enlist(writer).append(future)
        await future

    def enlist(self, writer: Writer) -> list[asyncio.Future[None]]:
        """Have the writer's rows written with this turn's, without waiting; returns where its waiters queue."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._until, self._wait = loop.time() + PATIENCE, _FIRST_WAIT
            self._timer = loop.call_soon(self._turn)
        return self._waiting.setdefault(writer, [])

    def withdraw(self, writer: Writer) -> None:
        """The writer closes: it takes no part any more."""
        for future in self._waiting.pop(writer, ()):
            if not future.done():
                future.set_exception(JournalError("The session was closed before its last events were written"))

    def stop(self) -> None:
        """Nothing is written by this gate any more; whoever still waits gets an error."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for writer in list(self._waiting):
            self.withdraw(writer)

    def _turn(self) -> None:
        self._timer = None
        error: JournalError | None = JournalError("The commit was interrupted")
        again = False
        try:
            self._write(self._waiting.keys())
            error = None
        except StoreLocked as locked:
            error, again = locked, self._schedule()
        except JournalError as failure:
            error = failure
        finally:  # also when something unforeseen flies past: nobody may wait for ever
            if not again:
                self._answer(error)

    def _schedule(self) -> bool:
        loop = asyncio.get_running_loop()
        if loop.time() >= self._until:
            return False
        self._timer = loop.call_later(self._wait, self._turn)
        self._wait = min(self._wait * 2, _LONGEST_WAIT)
        return True

    def _answer(self, error: JournalError | None) -> None:
        waiting, self._waiting = self._waiting, {}
        for futures in waiting.values():
            for future in futures:
                if future.done():
                    continue
                if error is None:
                    future.set_result(None)
                else:  # each gets its own: one shared exception would collect the tracebacks of all
                    mine = copy(error)
                    mine.__cause__ = error.__cause__
                    future.set_exception(mine)
