"""A run as an async iterator of its events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

from handwork.events import Event, Listener, TextDelta, ThinkingDelta, ToolArgsDelta, ToolOutputDelta

_BACKLOG = 256
"""Events that may wait for a slow reader before deltas are merged."""


class EventQueue:
    """What a reader has not taken yet; putting never waits, so a reader that has gone never holds up the run."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._more = asyncio.Event()
        self.closed = False

    def put(self, event: Event) -> None:
        if self.closed:
            return
        if len(self._events) >= _BACKLOG and (merged := _merge(self._events[-1], event)) is not None:
            self._events[-1] = merged
        else:
            self._events.append(event)
        self._more.set()

    def finish(self) -> None:
        self.closed = True
        self._more.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            while self._events:
                yield self._events.popleft()
            if self.closed:
                return
            self._more.clear()
            await self._more.wait()


def _merge(last: Event, new: Event) -> Event | None:
    """Two deltas of one source as one; None if they are not."""
    if isinstance(last, _DELTAS) and isinstance(new, _DELTAS) and _source(last) == _source(new):
        return new.model_copy(update={"text": last.text + new.text})
    return None


_DELTAS = (TextDelta, ThinkingDelta, ToolArgsDelta, ToolOutputDelta)


def _source(delta: TextDelta | ThinkingDelta | ToolArgsDelta | ToolOutputDelta) -> tuple[object, ...]:
    return type(delta), delta.agent, getattr(delta, "index", None), getattr(delta, "call_id", None)


async def stream_events(
    run: Callable[[Listener], Awaitable[Any]],
) -> AsyncGenerator[Event, None]:
    """Yield the events that `run(listener)` tells its listener; closing this iterator cancels the run and waits for its end."""
    queue = EventQueue()

    async def work() -> None:
        try:
            await run(queue.put)
        finally:
            queue.finish()

    task = asyncio.create_task(work())
    try:
        async for event in queue:
            yield event
        await task
    finally:
        task.cancel()
        await asyncio.wait({task})
