"""One run of one agent: its ids, clock, spending and outcome so far, and how it is brought to an end."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Literal

from handwork import events as ev
from handwork.agent.stuck import StuckDetector
from handwork.errors import BudgetExceeded, Waiting
from handwork.schema import Artifact, Message, RunResult, Status, Usage
from handwork.session import Session

Level = Literal["info", "warning", "error"]
_GRACE = 1.5
"""Seconds that a stopped run's work may take before it is left behind."""


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
        self._stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when somebody asked the run to stop."""

    # ---- from its beginning to its end

    async def drive(
        self, work: Coroutine[Any, Any, None], finish: Callable[[Run, RunResult], Awaitable[None]]
    ) -> RunResult:
        """Do the work as a task of its own until it is done, cancel() is called or the time is over; then `finish` the result.

        An exception of the work becomes the result's error. Cancelling the caller stops the work as cancel() does, and is raised
        again after `finish`.
        """
        task = asyncio.create_task(work, name=f"run {self.id}")
        outer: asyncio.CancelledError | None = None
        try:
            await self._wait_for(task)
        except asyncio.CancelledError as cancelled:
            outer = cancelled
            await self._end(task)
        result = self._result(task)
        await asyncio.shield(finish(self, result))
        if outer is not None:
            raise outer
        return result

    def cancel(self) -> None:
        """Ask the run to end as cancelled."""
        if not self._stop.done():
            self._stop.set_result(None)

    async def _wait_for(self, task: asyncio.Task[None]) -> None:
        left = None if self.deadline is None else self.deadline - asyncio.get_running_loop().time()
        await asyncio.wait({task, self._stop}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return
        if not self._stop.done():
            self.status = Status.TIMEOUT
        await self._end(task)

    async def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        _, pending = await asyncio.wait({task}, timeout=_GRACE)
        if pending:
            self.session.notify("warning", "A tool ignored the request to stop and was left behind.")

    def _result(self, task: asyncio.Task[None]) -> RunResult:
        error = task.exception() if task.done() and not task.cancelled() else None
        if self.status is not Status.TIMEOUT:
            self.status = self._status(task, error)
        return RunResult(
            status=self.status,
            output=self.output,
            steps=self.steps,
            usage=self.usage,
            cost=self.cost,
            session_id=self.session.id,
            artifacts=tuple(self.artifacts),
            error=None if self.status in (Status.TIMEOUT, Status.CANCELLED) else error,
            detail=str(error) if error else "",
            seconds=time.monotonic() - self.began,
            value=self.value,
        )

    def _status(self, task: asyncio.Task[None], error: BaseException | None) -> Status:
        match error:
            case BudgetExceeded():
                return Status.BUDGET
            case Waiting():
                return Status.WAITING
            case None if not task.done() or task.cancelled():
                return Status.CANCELLED
            case None:
                return self.status or Status.FINISHED
            case _:
                return Status.ERROR

    # ---- what it tells and counts

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
