"""BaseAgent: the loop – states, limits, stuck detection, cancelling and the result."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from weakref import ref

from handwork import events as ev
from handwork.agent.asked import Asked, asked, messages_of
from handwork.agent.at_work import AtWork
from handwork.agent.in_session import InSession
from handwork.agent.run import Run
from handwork.agent.steering import Steering
from handwork.agent.stuck import StepTrace, signature
from handwork.errors import HandworkError
from handwork.llm.base import Model
from handwork.llm.llm import LLM
from handwork.schema import (
    AgentState,
    Budget,
    ErrorInfo,
    Limits,
    Memory,
    Message,
    RunResult,
    Status,
)
from handwork.schema.fields import construct
from handwork.session import Session, check_doors, uncancelled
from handwork.tool.pictures import Source

NUDGE = (
    "You are repeating yourself without progress. Change your strategy: try another tool or other arguments, "
    "or finish with what you have."
)


class BaseAgent(InSession, ABC):
    """An agent: give it a task with `await agent.run("…")`, or watch it with `async for event in agent.stream("…")`.

    Every field below, and `memory`, can be given at construction, or overridden in a subclass by one line. Subclasses write
    `step()`.

    Fields beyond OpenManus's: `settings` (None: looked up as on the command line), `session` (None: the agent opens its
    own), `workspace`, `ask` and `approve` (the doors to the human), `timeout` (seconds of one run), `budget` (a Budget, or a
    number of USD, for the whole session).
    """

    name: str = "agent"
    description: str | None = None
    system_prompt: str | None = None
    next_step_prompt: str | None = None
    llm: LLM | Model | str | None = None
    state: AgentState = AgentState.IDLE
    max_steps: int = 10
    current_step: int = 0
    duplicate_threshold: int = 2

    timeout: float | None = None
    budget: Budget | float | None = None

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self._run: Run | None = None
        self._at_work = AtWork()
        self._steering = Steering()
        construct(self, fields)
        check_doors(self.ask, self.approve)
        if self.memory is None:
            self.memory = Memory()
        self.initialize_agent()

    def initialize_agent(self) -> None:
        """Runs after construction: makes the model of an agent that was given none, or its name. Needs no key and no file."""
        if self.llm is None or isinstance(self.llm, str):
            self.llm = LLM(self.name.lower(), self.settings, self.llm, notify=self._notify)

    def _notify(self, level: str, text: str) -> None:
        if self._run is not None:
            self._run.session.notify(level, text)

    @abstractmethod
    async def step(self) -> str:
        """Do one step; returns the line that the summary shows."""

    # ---- states

    @asynccontextmanager
    async def state_context(self, new_state: AgentState) -> AsyncIterator[None]:
        """Be in a state for a while; back to the one before at the end, to ERROR after an exception."""
        if not isinstance(new_state, AgentState):
            raise ValueError(f"Invalid state: {new_state}")
        after, self.state = self.state, new_state
        try:
            yield
        except Exception:
            after = AgentState.ERROR
            raise
        finally:
            self.state = after

    def reset(self) -> None:
        """Back to IDLE after an error; memory is kept. Raises RuntimeError while a run goes on."""
        if self._at_work:
            raise RuntimeError(f"Cannot reset agent in state: {self.state.value}")
        self.state = AgentState.IDLE

    # ---- the run

    async def run(
        self, request: str | None = None, *, images: Iterable[Source] = (), listener: ev.Listener | None = None
    ) -> RunResult:
        """Work on a request until it is done, stopped or handed back; without one, go on where memory stands.

        `images` belong to the request: paths of picture files, their bytes, or Images. `listener` is told every event of this
        run. Returns a RunResult for every end; raises RuntimeError if the agent is not IDLE, PictureError and ValueError for
        images that cannot be used, and re-raises the cancelling of the task itself after run_finished(cancelled).
        """
        await self._at_work.stopped()
        return await self._at_work.end_of(self._start(request, images, listener))

    def _start(
        self,
        request: str | None,
        images: Iterable[Source],
        listener: ev.Listener | None,
        watcher: ref[Any] | None = None,
    ) -> asyncio.Task[RunResult]:
        if self.state is not AgentState.IDLE or self._at_work:
            raise RuntimeError(f"Cannot run agent from state: {self.state.value}")
        self.current_step = 0
        return self._occupy(self._live(request, images, listener), watcher)

    def _occupy(self, work: Coroutine[Any, Any, RunResult], watcher: ref[Any] | None = None) -> asyncio.Task[RunResult]:
        """Be RUNNING with this work, and with nothing else, until it is done."""
        self.state = AgentState.RUNNING
        return self._at_work.begin(work, f"agent {self.name}", self._release, watcher)

    def _release(self) -> None:
        if self.state in (AgentState.RUNNING, AgentState.FINISHED):
            self.state = AgentState.IDLE
        self._run = None

    async def _live(self, request: str | None, images: Iterable[Source], listener: ev.Listener | None) -> RunResult:
        """A run's own task, from reading what it is asked to closing its session."""
        given = await asked(request, images)
        try:
            async with self._opened() as session, session.taken(self._at_work.stop), session.listening(listener):
                run = self._run = self._begin(session)
                left_over = Asked(session.past.request, session.past.request_images)
                await self._make_ready(session)
                session.keep_images(given.images)
                given = Asked(given.text and session.said(given.text), given.images)
                run.emit(self._run_started(run, given))
                run.emit(ev.StateChanged(state=self.state))
                session.report(run_id=run.id, agent=run.agent)  # such as which model: before a call that was left open
                return await run.drive(self._work_through(run, given, left_over), self._finish)
        except HandworkError as error:  # there is no session to work in
            self.state = AgentState.ERROR
            return RunResult(status=Status.ERROR, error=error, detail=str(error))

    def stream(self, request: str | None = None, *, images: Iterable[Source] = ()) -> AsyncGenerator[ev.Event, None]:
        """Run, and yield every event of it; leaving the loop early cancels the run and waits for its end."""

        async def events() -> AsyncGenerator[ev.Event, None]:
            queue = ev.EventQueue()
            await self._at_work.stopped()
            running = self._start(request, images, queue.put, watcher)
            running.add_done_callback(lambda _: queue.finish())
            try:
                async for event in queue:
                    yield event
                running.result()
            finally:
                if not running.done():
                    self.cancel()
                    await uncancelled(asyncio.wait({running}))

        stream = events()
        watcher = ref(stream)
        return stream

    def cancel(self) -> None:
        """End the current run as cancelled; it returns its result within two seconds."""
        self._at_work.cancel()

    def steer(self, text: str) -> None:
        """Say something to the agent while it works; its model reads it at the beginning of the next step.

        May be called at any time from the agent's event loop (from another thread: `loop.call_soon_threadsafe`). Several texts
        are read in order, each as a user message, journaled like any other; an empty one is ignored. While no run goes on
        they wait for the first step of the next one.

        An answer in text does not end the run while words wait: it goes on with them, if it has a step left. Whatever
        else ends a run (terminate, a step that sets FINISHED, a limit, cancelling, an error) ends it at once; `unread()`
        then hands over what nobody has read.
        """
        self._steering.say(text)

    def unread(self) -> list[str]:
        """Take back the words of `steer` that no step has read, in order; they wait no longer."""
        return self._steering.take_back()

    def _begin(self, session: Session) -> Run:
        limits = session.settings.limits
        budget = self.budget if isinstance(self.budget, Budget | None) else Budget(usd=float(self.budget))
        if budget is None and (limits.budget is not None or limits.max_total_tokens is not None):
            budget = Budget(usd=limits.budget, tokens=limits.max_total_tokens)
        if budget is not None:
            session.budget = budget
        timeout = limits.timeout if self.timeout is None else self.timeout
        return Run(session, self.name, timeout=timeout, threshold=self.duplicate_threshold, stop=self._at_work.stop)

    async def _work_through(self, run: Run, given: Asked, left_over: Asked) -> None:
        """All of a run that can fail or be cancelled; `left_over` is a request that an earlier run never came to."""
        self._meet(run.session)
        wanted = await self._settle(run, given.text or left_over.text)
        if given.text or left_over.text:
            self.memory.add_messages(messages_of(given, left_over, wanted))
        self._journal_memory(run)
        await run.gate()
        while self.current_step < self.max_steps and self.state is not AgentState.FINISHED:
            self.current_step += 1
            await self._one_step(run)
            run.go_on()
        if self.state is not AgentState.FINISHED:
            run.status = Status.MAX_STEPS
            if self.current_step:
                run.steps.append(f"Terminated: Reached max steps ({self.max_steps})")

    async def _one_step(self, run: Run) -> None:
        run.emit(ev.StepStarted(step=self.current_step))
        self._steering.read_into(self.memory, run)
        before = len(self.memory.messages)
        line = ""
        try:
            line = await self.step()
            run.steps.append(f"Step {self.current_step}: {line}")
        finally:
            self._journal_memory(run)
            run.emit(ev.StepFinished(step=self.current_step, result=line))
        run.stuck.observe(self._trace(self.memory.messages[before:]))
        if self.state is not AgentState.FINISHED:
            if self.is_stuck() and not self._steering:  # what waits to be read is a new direction
                self.handle_stuck_state()
            else:
                run.stuck_steps = 0

    def _trace(self, stored: Sequence[Message]) -> StepTrace:
        return StepTrace(signature(stored))

    def _run_started(self, run: Run, given: Asked) -> ev.RunStarted:
        budget = run.session.budget
        return ev.RunStarted(
            request=given.text,
            images=given.images,
            model=self._model_name(),
            workspace=str(run.session.workspace),
            limits=Limits(max_steps=self.max_steps, timeout=run.timeout, usd=budget.usd, tokens=budget.tokens),
        )

    async def _make_ready(self, session: Session) -> None:
        """Before a run is told: settle what its first event says. What goes wrong here is left to the first request."""

    def _model_name(self) -> str:
        return ""

    async def _settle(self, run: Run, request: str | None) -> str | None:
        """Make the history valid before a run; returns the request, or None if it was used up."""
        return request

    # ---- stuck

    def is_stuck(self) -> bool:
        """Whether the last steps went round in circles; asked after every step."""
        return self._run is not None and self._run.stuck.is_stuck()

    def handle_stuck_state(self) -> None:
        """First nudge the model once; after duplicate_threshold more such steps end the run as stuck."""
        run = self._run
        if run is None:
            return
        run.stuck_steps += 1
        if run.stuck_steps == 1:
            run.nudge = NUDGE
        elif run.stuck_steps > self.duplicate_threshold:
            self._end(Status.STUCK)

    def _end(self, status: Status) -> None:
        self.state = AgentState.FINISHED
        if self._run is not None:
            self._run.status = status

    def _finish(self, run: Run, result: RunResult) -> None:
        """The run's last events, and the state that the agent is left in."""
        self._journal_memory(run)
        if self.state is AgentState.FINISHED:
            run.emit(ev.StateChanged(state=self.state))
        self.state = AgentState.ERROR if result.status is Status.ERROR else AgentState.IDLE
        run.emit(ev.StateChanged(state=self.state))
        error = result.error
        run.emit(
            ev.RunFinished(
                status=result.status,
                output=result.output,
                steps=self.current_step,
                usage=result.usage,
                cost_usd=result.cost,
                artifacts=result.artifacts,
                error=ErrorInfo(type=type(error).__name__, message=str(error)) if error else None,
            )
        )
