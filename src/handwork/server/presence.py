"""Whether the client of an HTTP session is still there: it says good-bye, or keeps a stream open, or just asks now and then."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from handwork.server.desk import Desk
from handwork.server.guard import App, Receive, Scope, Send
from handwork.server.protocol import SESSION_HEADER, session_key

GRACE = 30.0
"""Seconds in which a client may come back whose stream, or the request that its call came with, has broken off."""


_MANY = 1000
"""Sessions after which those that were forgotten by everybody else are forgotten here, too."""


@dataclass(slots=True)
class _Seen:
    """The requests of one session that are open now, and whether it ever had a stream that stands open."""

    open: int = 0
    streams: bool = False
    end: asyncio.TimerHandle | None = None


class Presence:
    """Stands before the MCP endpoint and has the guests of clients that are gone closed.

    A client that has a stream open, or a call, and then nothing for some time is gone. One that has never had a stream is only
    silent, as long as none of its calls is open.
    """

    def __init__(self, app: App, desk: Desk, *, grace: float = GRACE) -> None:
        self._app, self._desk, self._grace = app, desk, grace
        self._seen: dict[str, _Seen] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        header = SESSION_HEADER.encode()
        id = next((value.decode("latin-1") for key, value in scope["headers"] if key == header), "")
        if not id:
            await self._app(scope, receive, send)
            return
        if len(self._seen) > _MANY:
            self._seen = {id: seen for id, seen in self._seen.items() if seen.open or seen.end}
        seen = self._seen.setdefault(id, _Seen())
        self._came(seen, scope["method"])
        try:
            await self._app(scope, receive, send)
        finally:
            self._went(id, seen, scope["method"])

    def _came(self, seen: _Seen, method: str) -> None:
        seen.open += 1
        seen.streams = seen.streams or method == "GET"
        if seen.end is not None:
            seen.end.cancel()
            seen.end = None

    def _went(self, id: str, seen: _Seen, method: str) -> None:
        seen.open -= 1
        if method == "DELETE":
            self._leave(id)
        elif not seen.open:
            if self._desk.known(session_key(id)) is None:
                self._seen.pop(id, None)
            else:
                seen.end = asyncio.get_running_loop().call_later(self._grace, self._look, id, seen)

    def _look(self, id: str, seen: _Seen) -> None:
        guest, seen.end = self._desk.known(session_key(id)), None
        if not seen.open and guest is not None and (seen.streams or guest.busy):
            self._leave(id)

    def _leave(self, id: str) -> None:
        self._seen.pop(id, None)
        self._desk.leave(session_key(id))
