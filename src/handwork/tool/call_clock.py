"""The time that a call may take: it stands still while a person is asked about what the call is doing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class CallClock:
    """Of one session: whoever asks stops it, and every limit that runs by it gets the time back."""

    def __init__(self) -> None:
        self._stops = 0
        self._left: dict[asyncio.Timeout, float] = {}
        """The limits that run, each with the seconds that it had left when the clock was stopped."""

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """No limit runs on within this."""
        self._stops += 1
        if self._stops == 1:
            self._stop()
        try:
            yield
        finally:
            self._stops -= 1
            if not self._stops:
                self._go_on()

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        """asyncio.timeout(seconds), by this clock."""
        async with asyncio.timeout(None if self._stops else seconds) as limit:
            self._left[limit] = seconds
            try:
                yield limit
            finally:
                del self._left[limit]

    def restart(self, limit: asyncio.Timeout, seconds: float) -> None:
        """Give a limit that runs its whole time again."""
        if limit in self._left and not limit.expired():
            self._left[limit] = seconds
            if not self._stops:
                limit.reschedule(asyncio.get_running_loop().time() + seconds)

    def _stop(self) -> None:
        now = asyncio.get_running_loop().time()
        for limit in self._left:
            if (until := limit.when()) is not None and not limit.expired():
                self._left[limit] = max(until - now, 0.0)
                limit.reschedule(None)

    def _go_on(self) -> None:
        now = asyncio.get_running_loop().time()
        for limit, left in self._left.items():
            if not limit.expired():
                limit.reschedule(now + left)
