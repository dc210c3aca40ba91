"""One run of one agent: its ids, clock, spending and outcome so far, and how it is brought to an end."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from handwork import events as ev
from handwork.agent.stuck import StuckDetector
from handwork.errors import BudgetExceeded, JournalError, Waiting
from handwork.schema import Artifact, RunResult, Status, Usage
from handwork.session import Session, uncancelled

_PAIRED = {ev.ToolCallStarted, ev.ToolCallFinished, ev.StepStarted, ev.StepFinished}
Level = Literal["info", "warning", "error"]
_GRACE = 1.5
"""Seconds that a stopped run's work may take before the run ends without it."""
_ENDED_WITHOUT = (
    f"A tool did not stop within {_GRACE:g} seconds of being asked to, and the run has ended without it; "
    "what it runs in the sandbox is killed."
)


class Run:
    """What belongs to one run and to nothing else; `emit` puts the run's name on events.

    A run is open, then `closing` (nothing new may begin: a gate raises CancelledError), then `closed` (nothing is told any more),
    whatever its work does meanwhile. `deadline` is on the event loop's clock; `nudge` is text for the next request only;
    `answer` is what a tool gave as the final answer, `beside` the text next to the call that ended the run.
    """

    def __init__(
        self, session: Session, agent: str, *, timeout: float | None, threshold: int, stop: asyncio.Event | None = None
    ) -> None:
        self.session, self.agent = session, agent
        self.id = secrets.token_hex(6)
        self.began = time.monotonic()
        self.timeout = timeout
        self.deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        self.stop = stop or asyncio.Event()
        """Set when somebody asked the run to end as cancelled."""
        self.closing = self.closed = False
        self._threshold = threshold
        self.stuck = StuckDetector(threshold)
        self.stuck_steps = self.empty_replies = 0
        self.corrected = False
        self.finish_reason = "stop"
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
        self.answers: dict[str, str] = {}
        """A human's answers that came with the run, by the question's id."""
        self._open_calls: set[str] = set()
        self._open_step: int | None = None

    def start_counting_anew(self) -> None:
        """Somebody gave the run a new direction: that it went in circles before is forgotten."""
        if self.stuck_steps:
            self.nudge = None
        self.stuck = StuckDetector(self._threshold)
        self.stuck_steps = self.empty_replies = 0

    # ---- from its beginning to its end

    async def drive(self, work: Coroutine[Any, Any, None], finish: Callable[[Run, RunResult], None]) -> RunResult:
        """Do the work as a task of its own until it is done, `stop` is set or the time is over; then `finish` and the last gate.

        An exception of the work becomes the result's error. Being cancelled stops the work, and is no error here: the caller
        that waits for this knows whether it was.
        """
        task = asyncio.create_task(work, name=f"run {self.id}")
        await self._until_over(task)
        self.closing = True
        self._close_pairs()
        result = self._result(task)
        finish(self, result)
        self.closed = True
        try:
            await uncancelled(self.session.gate(run_id=self.id, agent=self.agent))
        except JournalError as error:  # the run is over; that its end is not on disk is its last error
            result.status, result.error, result.detail = Status.ERROR, result.error or error, str(error)
        return result

    async def _until_over(self, task: asyncio.Task[None]) -> None:
        stopped = asyncio.create_task(self.stop.wait())
        try:
            left = None if self.deadline is None else self.deadline - asyncio.get_running_loop().time()
            await asyncio.wait({task, stopped}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.stop.set()
        finally:
            stopped.cancel()
        if task.done():
            return
        if not self.stop.is_set():
            self.status = Status.TIMEOUT
        self.closing = True
        task.cancel()
        (_, pending), _ = await uncancelled(asyncio.wait({task}, timeout=_GRACE))
        if pending:
            self.session.notify("warning", _ENDED_WITHOUT)
            task.add_done_callback(_forget)

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

    def emit(self, event: ev.Event) -> None:
        """Tell an event of this run; after its end nothing is told any more."""
        if self.closed:
            return
        if type(event) in _PAIRED:
            self._track(event)
        self.session.emit(event, run_id=self.id, agent=self.agent)

    def _track(self, event: ev.Event) -> None:
        match event:
            case ev.ToolCallStarted():
                self._open_calls.add(event.call.id)
            case ev.ToolCallFinished():
                self._open_calls.discard(event.call_id)
            case ev.StepStarted():
                self._open_step = event.step
            case ev.StepFinished():
                self._open_step = None

    def _close_pairs(self) -> None:
        """Close what work that was left behind has open."""
        self.session.withdraw_questions()
        for id in sorted(self._open_calls):
            why = "it did not stop in time when it was asked to; how far it came is not known"
            self.emit(ev.ToolCallFinished(call_id=id, observation=why, is_error=True, ending="interrupted"))
        if self._open_step is not None:
            self.emit(ev.StepFinished(step=self._open_step, result=""))

    def notice(self, level: Level, text: str) -> None:
        self.emit(ev.Notice(level=level, text=text))

    async def gate(self) -> None:
        """What was told is on disk when this returns. Raises CancelledError once the run is being ended, and JournalError."""
        self.go_on()
        await self.session.gate(run_id=self.id, agent=self.agent)
        self.go_on()

    def go_on(self) -> None:
        """Raise CancelledError if the run is being ended: whoever swallowed the first one gets another."""
        if self.closing:
            raise asyncio.CancelledError(f"run {self.id} is over")

    def spend(self, usage: Usage, cost: float | None) -> None:
        """Count one request's tokens and USD (None: unknown), and tell them."""
        self.usage += usage
        self._costs.append(cost)
        self.emit(
            ev.UsageReported(
                input=usage.input,
                cached=usage.cached,
                written=usage.written,
                output=usage.output,
                reasoning=usage.reasoning,
                cost_usd=cost,
            )
        )

    @property
    def cost(self) -> float | None:
        """USD of all requests; None if nothing was asked or one had no known price."""
        costs = [cost for cost in self._costs if cost is not None]
        return sum(costs) if costs and len(costs) == len(self._costs) else None

    @property
    def output(self) -> str:
        """The answer so far (CONTRACT A14)."""
        return next((text for text in (self.answer, self.beside, self.last_text) if text), "")


def _forget(task: asyncio.Task[None]) -> None:
    """Take note of what a task that was left behind ended with, so that nobody reports it as unseen."""
    if not task.cancelled():
        task.exception()
