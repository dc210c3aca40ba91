"""In which order calls run that a client sends one by one, without waiting (CONTRACT B7)."""

from __future__ import annotations

import asyncio

from handwork.agent.schedule import Prepared
from handwork.agent.turn import Turn
from handwork.policy.conflicts import conflicts
from handwork.schema import ToolCall


class InTurn:
    """The calls of one client that are open: a new one waits for those before it that it conflicts with, and for no other."""

    def __init__(self) -> None:
        self._arriving = asyncio.Lock()
        self._open: list[Prepared] = []

    async def run(self, turn: Turn, call: ToolCall) -> None:
        """Run a call of a turn when its time has come; what came of it is in `turn.outcomes`."""
        async with (
            self._arriving
        ):  # what a call does is known after a look into the sandbox: nobody overtakes meanwhile
            prepared = await turn.prepared(call)
            before = [other for other in self._open if _in_the_way(other, prepared)]
            self._open.append(prepared)
        try:
            await turn.permit(call)
            for other in before:
                await other.done.wait()
            await turn.execute(call)
        finally:
            prepared.done.set()
            self._open.remove(prepared)


def _in_the_way(other: Prepared, mine: Prepared) -> bool:
    if mine.idle or other.idle:
        return False
    return mine.alone or other.alone or conflicts(other.actions, mine.actions)
