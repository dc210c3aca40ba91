"""One run of one agent: its ids, clock, spending and outcome so far."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Any, Literal

from handwork import events as ev
from handwork.agent.stuck import StuckDetector
from handwork.schema import Artifact, Message, Status, Usage
from handwork.session import Session

Level = Literal["info", "warning", "error"]


class Run:
    """What belongs to one run and to nothing else; `emit` puts the run's name on events.

    `deadline` is on the event loop's clock; `nudge` is text for the next request only; `answer` is what a tool gave as the
    final answer, `beside` the text next to the call that ended the run.
    """

    def __init__(self, session: Session, agent: str, *, timeout: float | None, threshold: int) -> None:
        self.session, self.agent = session, agent
        self.id = secrets.token_hex(6)
        self.began = time.monotonic()
        self.deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        self.stuck = StuckDetector(threshold)
        self.stuck_steps = 0
        self.steps: list[str] = []
        self.usage = Usage()
        self._costs: list[float | None] = []
        self.status: Status | None = None
        self.nudge: str | None = None
        self.answer: str | None = None
        self.value: Any = None
        self.beside: str | None = None
        self.last_text: str | None = None
        self.artifacts: list[Artifact] = []
        self.history: Sequence[Message] = ()
        """The conversation as tools see it."""
        self.cancel_asked = False
        self.stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when somebody asked the run to stop."""

    async def emit(self, event: ev.Event) -> None:
        await self.session.emit(event, run_id=self.id, agent=self.agent)

    async def notice(self, level: Level, text: str) -> None:
        await self.emit(ev.Notice(level=level, text=text))

    async def gate(self) -> None:
        await self.session.gate(run_id=self.id, agent=self.agent)

    def spend(self, usage: Usage, cost: float | None) -> None:
        self.usage += usage
        self._costs.append(cost)
        self.session.ledger.add(usage, cost)

    @property
    def cost(self) -> float | None:
        """USD of all requests; None if nothing was asked or one had no known price."""
        costs = [cost for cost in self._costs if cost is not None]
        return sum(costs) if costs and len(costs) == len(self._costs) else None

    @property
    def output(self) -> str:
        """The answer so far (CONTRACT A14)."""
        return next((text for text in (self.answer, self.beside, self.last_text) if text), "")
