"""In which order the calls of one reply run (CONTRACT B7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from handwork.policy.conflicts import conflicts
from handwork.schema import Action, ToolCall


@dataclass(slots=True)
class Prepared:
    """A call, what it does, and whether it must be alone: one that ends the run or asks the human.

    `idle` calls do nothing (they were not understood): they wait for nobody.
    """

    call: ToolCall
    actions: Sequence[Action] = ()
    alone: bool = False
    idle: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Performer(Protocol):
    """Who runs the calls that a schedule orders."""

    async def permit(self, call: ToolCall) -> None:
        """Settle whether a call may run; called in the order of the calls, before they wait for each other."""

    async def perform(self, call: ToolCall) -> None:
        """Run a call."""

    @property
    def goes_on(self) -> bool:
        """Whether anything new may be started."""


async def run_in_order(calls: Sequence[Prepared], performer: Performer) -> None:
    """Run calls together unless they conflict.

    A call that must be alone waits for all before it, and nothing after it starts before it is done. What one call raises
    lets those that run come to their end, starts nothing new, and is raised then.
    """
    batch: list[Prepared] = []
    for prepared in calls:
        if prepared.alone:
            await _run_batch(batch, performer)
            await _run_batch([prepared], performer)
            batch = []
        else:
            batch.append(prepared)
    await _run_batch(batch, performer)


async def _run_batch(batch: Sequence[Prepared], performer: Performer) -> None:
    failed = False

    async def one(prepared: Prepared, before: Sequence[Prepared]) -> None:
        nonlocal failed
        try:
            await performer.permit(prepared.call)
            for other in before:
                await other.done.wait()
            if performer.goes_on and not failed:
                await performer.perform(prepared.call)
        except BaseException:
            failed = True
            raise
        finally:
            prepared.done.set()

    if len(batch) == 1:  # the usual case needs no task of its own
        await one(batch[0], ())
    elif batch:
        await _together([one(prepared, _in_the_way(batch, index)) for index, prepared in enumerate(batch)])


def _in_the_way(batch: Sequence[Prepared], index: int) -> list[Prepared]:
    mine = batch[index]
    if mine.idle:
        return []
    return [other for other in batch[:index] if not other.idle and conflicts(other.actions, mine.actions)]


async def _together(work: Sequence[Awaitable[None]]) -> None:
    """Let all come to their end, whatever one of them raises; then raise the first."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    except asyncio.CancelledError:
        await asyncio.wait(tasks)  # they were cancelled, too
        raise
    for error in ends:
        if error is not None:
            raise error
