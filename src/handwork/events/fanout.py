"""How listeners get events: each in order, none of them able to hold up the run."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

from handwork.events.kinds import Event, TextDelta, ThinkingDelta, ToolArgsDelta, ToolOutputDelta

Listener: TypeAlias = Callable[[Event], Awaitable[None] | None]
"""Sees every event in order. A plain function is called at once; an async one is awaited beside the run, and a slow one gets
deltas merged. One that raises is dropped with a notice."""

_PATIENT = 10
"""So many times its patience a slow listener is waited for at the end, if it gets on."""
_BACKLOG = 256
"""Events that may wait for a slow reader before deltas are merged."""
_Delta: TypeAlias = TextDelta | ThinkingDelta | ToolArgsDelta | ToolOutputDelta
_DELTAS = (TextDelta, ThinkingDelta, ToolArgsDelta, ToolOutputDelta)


class _Merged:
    """Deltas of one source, waiting as one."""

    def __init__(self, first: _Delta) -> None:
        self.last, self.parts = first, [first.text]

    def add(self, delta: _Delta) -> None:
        self.last = delta
        self.parts.append(delta.text)

    def event(self) -> Event:
        return self.last.model_copy(update={"text": "".join(self.parts)})


class EventQueue:
    """What a reader has not taken yet; putting never waits. Iterating ends after `finish`.

    While more than `backlog` events wait, deltas of one source are merged.
    """

    def __init__(self, backlog: int = _BACKLOG) -> None:
        self._backlog = backlog
        self._waiting: deque[Event | _Merged] = deque()
        self._more = asyncio.Event()
        self._finished = False

    def put(self, event: Event) -> None:
        if self._finished:
            return
        if len(self._waiting) >= self._backlog and isinstance(event, _DELTAS):
            self._merge(event)
        else:
            self._waiting.append(event)
        self._more.set()

    def finish(self) -> None:
        self._finished = True
        self._more.set()

    def __len__(self) -> int:
        return len(self._waiting)

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            while self._waiting:
                first = self._waiting.popleft()
                yield first.event() if isinstance(first, _Merged) else first
            if self._finished:
                return
            self._more.clear()
            await self._more.wait()

    def _merge(self, delta: _Delta) -> None:
        last = self._waiting[-1]
        if isinstance(last, _DELTAS) and _source(last) == _source(delta):
            last = self._waiting[-1] = _Merged(last)
        if isinstance(last, _Merged) and _source(last.last) == _source(delta):
            last.add(delta)
        else:
            self._waiting.append(delta)


def _source(delta: _Delta) -> tuple[object, ...]:
    return type(delta), delta.agent, getattr(delta, "index", None), getattr(delta, "call_id", None)


class _Ear:
    """One listener; its queue and task exist from the first time that it had to be awaited."""

    def __init__(self, listener: Listener, failed: Callable[[_Ear, BaseException], None]) -> None:
        self.listener, self._failed = listener, failed
        self._queue: EventQueue | None = None
        self._task: asyncio.Task[None] | None = None
        self._taken, self._stopped = 0, False
        self._idle = asyncio.Event()
        self._idle.set()

    def hear(self, event: Event) -> None:
        if self._queue is not None:
            self._idle.clear()
            self._queue.put(event)
            return
        try:
            waiting = self.listener(event)
        except (
            Exception,
            asyncio.CancelledError,
        ) as error:  # a listener is a named boundary: the run goes on without it
            self._failed(self, error)
            return
        if inspect.isawaitable(waiting):
            self._idle.clear()
            self._queue = EventQueue(backlog=1)
            self._task = asyncio.create_task(self._listen(waiting, self._queue))

    async def _listen(self, first: Awaitable[None], queue: EventQueue) -> None:
        try:
            await first
            self._rest(queue)
            async for event in queue:
                if inspect.isawaitable(waiting := self.listener(event)):
                    await waiting
                self._rest(queue)
        except asyncio.CancelledError as error:
            if self._stopped:
                raise
            self._failed(self, error)  # the listener's own
        except Exception as error:  # a listener is a named boundary: the run goes on without it
            self._failed(self, error)
        finally:
            self._idle.set()

    def _rest(self, queue: EventQueue) -> None:
        self._taken += 1
        if not queue:
            self._idle.set()

    async def drained(self, patience: float) -> None:
        """Until it has taken everything, or took nothing for `patience` seconds, or that often in all."""
        for _ in range(_PATIENT):
            taken = self._taken
            try:
                await asyncio.wait_for(self._idle.wait(), patience)
            except TimeoutError:
                if self._taken > taken:
                    continue
            return

    def stop(self) -> None:
        self._stopped = True
        if self._task is not None:
            self._task.cancel()


class FanOut:
    """Tells events to listeners, one event after another, also when a listener causes the next one.

    `failed(listener, error)` hears of one that raised, after it was dropped.
    """

    def __init__(self, failed: Callable[[Listener, BaseException], None]) -> None:
        self._failed = failed
        self._ears: list[_Ear] = []
        self._outbox: deque[Event] = deque()
        self._telling = False
        self._dropped: deque[tuple[Listener, BaseException]] = deque()

    def __bool__(self) -> bool:
        return bool(self._ears)

    def add(self, listener: Listener) -> None:
        self._ears.append(_Ear(listener, self._drop))

    def tell(self, event: Event) -> None:
        if not self._ears:
            return
        self._outbox.append(event)
        if self._telling:
            return
        self._telling = True
        try:
            while self._outbox:
                event = self._outbox.popleft()
                for ear in tuple(self._ears):
                    ear.hear(event)
        finally:
            self._telling = False
        self._report()

    async def remove(self, listener: Listener, patience: float) -> None:
        """Let a listener take what waits for it, as long as it takes something every `patience` seconds; then tell it no more."""
        ear = next((ear for ear in reversed(self._ears) if ear.listener is listener), None)
        if ear is not None:
            await self._end(ear, patience)

    async def close(self, patience: float) -> None:
        """The same for all of them."""
        while self._ears:
            await self._end(self._ears[0], patience)

    async def _end(self, ear: _Ear, patience: float) -> None:
        try:
            await ear.drained(patience)
        finally:
            if ear in self._ears:
                self._ears.remove(ear)
            ear.stop()

    def _drop(self, ear: _Ear, error: BaseException) -> None:
        if ear in self._ears:
            self._ears.remove(ear)
            self._dropped.append((ear.listener, error))
        if not self._telling:
            self._report()

    def _report(self) -> None:
        while self._dropped:
            self._failed(*self._dropped.popleft())
