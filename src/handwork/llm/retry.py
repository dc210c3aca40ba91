"""A Model that asks another one again after failures that can pass (CONTRACT E2)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable

from handwork.errors import BrokenStreamError, TransientModelError
from handwork.llm.asking import asking, close_model
from handwork.llm.base import Model
from handwork.schema import Discarded, Reply, Request, Retrying, StreamItem, TextDelta, ThinkingDelta, ToolArgsDelta

_LONGEST = 30.0
"""Seconds up to which the random wait's window grows."""
SHOWN = (TextDelta, ThinkingDelta, ToolArgsDelta)
"""What a person may have seen of an answer."""


class Retry:
    """Asks up to `retries` times more.

    Args:
        limit: the longest wait in seconds; when more is asked for, or more than the run has left, the error is raised at once.
        clock, sleep, random: the loop's time, asyncio.sleep, and a number from 0 to 1; given by tests.
    """

    def __init__(
        self,
        model: Model,
        *,
        retries: int = 5,
        limit: float = 120.0,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        self.model = model
        self._retries, self._limit = retries, limit
        self._clock, self._sleep, self._random = clock, sleep, random

    @property
    def name(self) -> str:
        return self.model.name

    async def stream(self, request: Request) -> AsyncIterator[StreamItem]:
        attempt = 0
        while True:
            attempt += 1
            shown = False
            try:
                async with asking(self.model, request) as items:
                    async for item in items:
                        shown = shown or isinstance(item, SHOWN)
                        yield item
                        if isinstance(item, Reply):
                            return
                raise BrokenStreamError("the model's stream ended without a reply", model=self.name)
            except TransientModelError as error:
                wait = self._wait(error, attempt, request.deadline)
                if wait is None:
                    raise
                failed = error
            if shown:
                yield Discarded()
            yield Retrying(failed, wait, attempt)
            await self._sleep(wait)

    async def aclose(self) -> None:
        await close_model(self.model)

    def _wait(self, error: TransientModelError, attempt: int, deadline: float | None) -> float | None:
        """Seconds until the next try; None when there is none."""
        if attempt > self._retries:
            return None
        window = min(_LONGEST, 2.0 ** (attempt - 1))
        wait = max(window * self._random(), error.retry_after or 0.0)
        if wait > self._limit:
            return None
        if deadline is not None and wait >= deadline - self._now():
            return None
        return wait

    def _now(self) -> float:
        return self._clock() if self._clock else asyncio.get_running_loop().time()
