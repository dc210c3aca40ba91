"""Who is connected: the guests by what tells them apart, and what becomes of those that say nothing any more."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter

from handwork.errors import HandworkError
from handwork.server.guest import Guest
from handwork.server.house import House

MOST = 64
"""Guests at a time."""
SHARE = 32
"""Guests of one client that may be at work at a time: who names no handle is a new guest with each call."""
IDLE = 600.0
"""Seconds without a call after which a guest's session is closed: its programs end; the next call opens it again."""
_LOOK = 15.0


class Desk:
    """The guests. A key is what the transport tells a client by; who has none is given a handle, and names it to come back."""

    def __init__(self, house: House, *, idle: float = IDLE) -> None:
        self.house, self._idle = house, idle
        self._guests: dict[str, Guest] = {}
        self._handles: set[str] = set()
        self._owners: dict[str, str] = {}
        """Whose guest each is, by its key."""
        self._closing: set[asyncio.Task[None]] = set()

    def guest(self, key: str, label: str, who: str = "") -> Guest:
        """The guest of a key, a new one if there is none; `who` is the client that has several. Raises HandworkError if there is no
        room."""
        if (guest := self._guests.get(key)) is None:
            self._make_room(who)
            self._owners[key] = who or key
            guest = self._guests[key] = Guest(self.house, label)
        return guest

    def by_handle(self, handle: str | None, label: str, who: str = "") -> tuple[str, Guest]:
        """The guest of a handle, or a new one and its handle. Raises HandworkError for a handle that is not known (any more)."""
        if handle is None:
            handle = secrets.token_hex(8)
            self._handles.add(handle)
        elif handle not in self._handles:
            raise HandworkError(
                f"There is no session {handle!r} (any more)", hint="leave `session` out to begin a new one"
            )
        return handle, self.guest(handle, label, who)

    @property
    def handles(self) -> list[Guest]:
        """The guests that have a handle."""
        return [guest for key, guest in self._guests.items() if key in self._handles]

    def known(self, key: str) -> Guest | None:
        """The guest of a key, if there is one."""
        return self._guests.get(key)

    def _make_room(self, who: str) -> None:
        """Whoever has the most guests gives one up, the one that has rested the longest: nobody pushes out all the others."""
        working = [key for key, guest in self._guests.items() if guest.busy and self._owners[key] == who]
        if len(working) >= SHARE:
            raise HandworkError(f"{SHARE} sessions of this client are at work already", hint="wait until one has ended")
        if len(self._guests) < MOST:
            return
        having = Counter(self._owners.values())
        resting = [key for key, guest in self._guests.items() if not guest.busy]
        if not resting:
            raise HandworkError(f"{MOST} clients are at work already", hint="try again when one of them has ended")
        self.leave(min(resting, key=lambda key: (-having[self._owners[key]], self._guests[key].used)))

    def leave(self, key: str) -> None:
        """A client is gone: its calls and its session are ended, without waiting."""
        self._handles.discard(key)
        self._owners.pop(key, None)
        if (guest := self._guests.pop(key, None)) is not None:
            self._close(guest)

    def _close(self, guest: Guest) -> None:
        task = asyncio.create_task(guest.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def watch(self) -> None:
        """Close the sessions of those that have been silent for long; goes on until it is cancelled."""
        while True:
            await asyncio.sleep(min(_LOOK, self._idle / 4))
            now = time.monotonic()
            for key, guest in list(self._guests.items()):
                if guest.busy or now - guest.used < self._idle:
                    continue
                if key in self._handles:
                    self.leave(key)
                else:
                    await guest.rest()

    async def close(self) -> None:
        """End everything; nothing is left behind."""
        for key in list(self._guests):
            self.leave(key)
        if self._closing:
            await asyncio.wait(set(self._closing))
