"""HTTP as uvicorn speaks it, for so many connections at most, each of which says in good time what it wants."""

from __future__ import annotations

import asyncio
from typing import Any

_PATIENCE = 10.0
"""Seconds in which the head of a request has to be there, counted from its first byte or the connection's beginning."""
_AWAITS_A_HEAD = "IDLE"
"""h11's name for the state of a client whose next request has not begun, or not come to the end of its head."""


def punctual(most: int, patience: float = _PATIENCE) -> type[Any]:
    """The protocol class. Without it anybody, who need not know the token, could take all descriptors of this process by
    connections that say nothing: uvicorn has no limit for a head, and takes connections without end."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Punctual(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > most:
                transport.abort()
            else:
                self._expect()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._expect()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._rest()

        def _expect(self) -> None:
            """The clock runs while a head is awaited, whatever has come of it; between two requests uvicorn's own does."""
            if str(self.conn.their_state) != _AWAITS_A_HEAD:
                self._rest()
            elif self._late is None:
                self._late = self.loop.call_later(patience, self.transport.abort)

        def _rest(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return Punctual
