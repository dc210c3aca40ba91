"""In which order the calls of one reply run (CONTRACT B7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from handwork.policy.conflicts import conflicts
from handwork.schema import Action, ToolCall


@dataclass(slots=True)
class Prepared:
    """A call, what it does, and whether it must be alone: one that ends the run or asks the human."""

    call: ToolCall
    actions: Sequence[Action]
    alone: bool
    done: asyncio.Event = field(default_factory=asyncio.Event)


async def run_in_order(
    calls: Sequence[Prepared],
    perform: Callable[[Prepared, Callable[[], Awaitable[None]]], Awaitable[None]],
    goes_on: Callable[[], bool],
) -> None:
    """Run calls together unless they conflict; `perform(call, turn)` awaits `turn()` right before the effect.

    A call that must be alone waits for all before it, and nothing after it starts before it is done. When `goes_on()`
    is false, nothing more is started. Cancelling this cancels the calls that run and waits for them.
    """
    batch: list[Prepared] = []
    for prepared in calls:
        if prepared.alone and batch:
            await _run_batch(batch, perform)
            batch = []
        batch.append(prepared)
        if prepared.alone:
            if goes_on():
                await _run_batch(batch, perform)
            batch = []
        if not goes_on():
            return
    if batch and goes_on():
        await _run_batch(batch, perform)


async def _run_batch(
    batch: Sequence[Prepared], perform: Callable[[Prepared, Callable[[], Awaitable[None]]], Awaitable[None]]
) -> None:
    if len(batch) == 1:  # the usual case needs no task of its own
        await perform(batch[0], _at_once)
        return

    async def one(index: int) -> None:
        prepared = batch[index]
        before = [other for other in batch[:index] if conflicts(other.actions, prepared.actions)]

        async def turn() -> None:
            for other in before:
                await other.done.wait()

        try:
            await perform(prepared, turn)
        finally:
            prepared.done.set()

    tasks = [asyncio.create_task(one(index)) for index in range(len(batch))]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise


async def _at_once() -> None:
    return None
