"""One writer on one session: events in, in order; on disk at the gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from handwork.errors import JournalError
from handwork.events import Event
from handwork.store.encode import decode, encode
from handwork.store.facts import Facts, now


class Backend(Protocol):
    """What a journal needs of its store: the seam behind which another database can stand."""

    async def commit(self, journal: Journal) -> None:
        """Return when `journal.pending` is on disk; raise JournalError and leave it as it is otherwise."""

    def commit_soon(self, journal: Journal) -> None:
        """Begin to write `journal.pending` without waiting."""

    def events(self, session_id: str, *, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """The committed rows after a sequence number, in order."""

    def release(self, journal: Journal) -> None:
        """Give the session's writer lock back."""


class Journal:
    """Made by `Store.begin`. `seq` is that of the last appended event, whether it is committed yet or not.

    For the store: `number` is the session's row (None until its first commit), `pending` are the encoded events not yet on
    disk, the last of which has the number `seq`; `since` is when this writer began.
    """

    __slots__ = ("_backend", "claimed", "closed", "facts", "number", "pending", "seq", "session_id", "since")

    def __init__(
        self, backend: Backend, session_id: str, facts: Facts, *, number: int | None = None, seq: int = 0
    ) -> None:
        self._backend = backend
        self.session_id, self.facts, self.number, self.seq = session_id, facts, number, seq
        self.pending: list[bytes] = []
        self.since = now()
        self.claimed = self.closed = False

    def append(self, event: Event) -> None:
        """Buffer an event whose `seq` is the next number; nothing is written before the next commit.

        Raises JournalError for a wrong number or a closed journal.
        """
        if self.closed:
            raise JournalError(f"Session {self.session_id} is closed: begin it again to write to it")
        if event.seq != self.seq + 1:
            raise JournalError(f"Session {self.session_id}: event {self.seq + 1} is due, not {event.seq}")
        self.pending.append(encode(event))
        self.facts.observe(event)
        self.seq += 1

    async def commit(self) -> None:
        """The gate: every event appended so far is on disk when this returns.

        Raises JournalError (disk full, I/O error, read-only, locked too long); the events stay buffered, so a later commit
        goes on when the cause has passed.
        """
        if self.closed and self.pending:
            raise JournalError(f"Session {self.session_id} was closed before its last events were written")
        await self._backend.commit(self)

    def commit_soon(self) -> None:
        """Have what is buffered written in this turn of the loop, without waiting for it.

        A gate that is reached in the same turn shares the transaction. An error is not told: the events stay buffered, and the
        next gate raises it.
        """
        if not self.closed:
            self._backend.commit_soon(self)

    def replay(self, *, after: int = 0) -> Iterator[Event]:
        """The committed events after a sequence number, in order; unknown kinds and unreadable rows come as UnknownEvent."""
        for seq, raw in self._backend.events(self.session_id, after=after):
            yield decode(self.session_id, seq, raw)

    def close(self) -> None:
        """Release the session; commits nothing, so commit first. Closing twice is fine."""
        if not self.closed:
            self.closed = True
            self._backend.release(self)
