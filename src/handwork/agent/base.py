"""BaseAgent: the loop – states, memory, limits, stuck detection, cancelling and the result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from handwork import events as ev
from handwork.agent.fields import construct
from handwork.agent.run import Run
from handwork.agent.stream import stream_events
from handwork.agent.stuck import StepTrace, signature
from handwork.config import Settings, load_settings
from handwork.errors import JournalError
from handwork.llm.base import Model
from handwork.llm.llm import LLM
from handwork.schema import (
    AgentState,
    Approve,
    Ask,
    Budget,
    ErrorInfo,
    Limits,
    Memory,
    Message,
    Role,
    RunResult,
    Status,
)
from handwork.session import Session

_NUDGE = (
    "You are repeating yourself without progress. Change your strategy: try another tool or other arguments, "
    "or finish with what you have."
)


class BaseAgent(ABC):
    """An agent: give it a task with `await agent.run("…")`, or watch it with `async for event in agent.stream("…")`.

    Every field below can be given at construction, or overridden in a subclass by one line. Subclasses write `step()`.

    Fields beyond OpenManus's: `settings` (None: looked up as on the command line), `session` (None: the agent opens its
    own), `workspace`, `ask` and `approve` (the doors to the human), `timeout` (seconds of one run), `budget` (a Budget, or a
    number of USD, for the whole session).
    """

    name: str = "agent"
    description: str | None = None
    system_prompt: str | None = None
    next_step_prompt: str | None = None
    llm: LLM | Model | str | None = None
    memory: Memory = Memory()
    state: AgentState = AgentState.IDLE
    max_steps: int = 10
    current_step: int = 0
    duplicate_threshold: int = 2

    settings: Settings | None = None
    session: Session | None = None
    workspace: str | Path | None = None
    ask: Ask | None = None
    approve: Approve | None = None
    timeout: float | None = None
    budget: Budget | float | None = None

    def __init__(self, **fields: Any) -> None:
        self._run: Run | None = None
        self._own_session: Session | None = None
        self._session_id: str | None = None
        self._met: Session | None = None
        self._journaled_in: str | None = None
        construct(self, fields)
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

    # ---- memory

    @property
    def messages(self) -> list[Message]:
        """Memory's list; it can be read, set and extended."""
        return self.memory.messages

    @messages.setter
    def messages(self, messages: Iterable[Message]) -> None:
        self.memory.messages = messages

    def update_memory(self, role: str, content: str, base64_image: str | None = None, **fields: Any) -> None:
        """Add a message; it is journaled at the next gate. Raises ValueError for an unknown role."""
        match role:
            case Role.USER:
                message = Message.user_message(content, base64_image, **fields)
            case Role.SYSTEM:
                message = Message.system_message(content, **fields)
            case Role.ASSISTANT:
                message = Message.assistant_message(content, base64_image, **fields)
            case Role.TOOL:
                message = Message.tool_message(content, base64_image=base64_image, **fields)
            case _:
                raise ValueError(f"Unsupported message role: {role}")
        self.memory.add_message(message)

    # ---- states

    @asynccontextmanager
    async def state_context(self, new_state: AgentState) -> AsyncIterator[None]:
        """Be in a state for a while; back to the one before at the end, to ERROR after an exception."""
        if not isinstance(new_state, AgentState):
            raise ValueError(f"Invalid state: {new_state}")
        before, self.state = self.state, new_state
        try:
            yield
        except Exception:
            self.state = AgentState.ERROR
            raise
        self.state = before

    def reset(self) -> None:
        """Back to IDLE after an error; memory is kept."""
        self.state = AgentState.IDLE

    # ---- the run

    async def run(self, request: str | None = None, *, listener: ev.Listener | None = None) -> RunResult:
        """Work on a request until it is done, stopped or handed back; without one, go on where memory stands.

        Returns a RunResult for every end; raises RuntimeError if the agent is not IDLE, and re-raises the cancelling of the
        task itself after run_finished(cancelled). `listener` is told every event of this run.
        """
        if self.state is not AgentState.IDLE:
            raise RuntimeError(f"Cannot run agent from state: {self.state.value}")
        self.state, self.current_step = AgentState.RUNNING, 0
        try:
            async with self._opened() as session:
                with session.listening(listener):
                    self._run = run = self._begin(session)
                    return await run.drive(self._work_through(run, request), self._finish)
        except BaseException:
            self.state = AgentState.IDLE
            raise
        finally:
            self._run = None

    def stream(self, request: str | None = None) -> AsyncGenerator[ev.Event, None]:
        """Run, and yield every event of it; leaving the loop early cancels the run."""
        return stream_events(lambda listener: self.run(request, listener=listener))

    def cancel(self) -> None:
        """End the current run as cancelled; it returns its result within two seconds."""
        if self._run is not None:
            self._run.cancel()

    def _begin(self, session: Session) -> Run:
        limits = session.settings.limits
        budget = (
            self.budget if isinstance(self.budget, Budget) or self.budget is None else Budget(usd=float(self.budget))
        )
        if budget is None and (limits.budget is not None or limits.max_total_tokens is not None):
            budget = Budget(usd=limits.budget, tokens=limits.max_total_tokens)
        session.set_budget(budget)
        timeout = limits.timeout if self.timeout is None else self.timeout
        return Run(session, self.name, timeout=timeout, threshold=self.duplicate_threshold)

    async def _work_through(self, run: Run, request: str | None) -> None:
        """A run's own task: everything that can fail or be cancelled."""
        self._meet(run.session)
        await run.emit(self._run_started(run, request))
        await run.emit(ev.StateChanged(state=self.state))
        await self._settle(run, request)
        await self._journal_memory(run)
        await run.gate()
        while self.current_step < self.max_steps and self.state is not AgentState.FINISHED:
            self.current_step += 1
            await self._one_step(run)
        if self.state is not AgentState.FINISHED:
            run.status = Status.MAX_STEPS
            if self.current_step:
                run.steps.append(f"Terminated: Reached max steps ({self.max_steps})")

    async def _one_step(self, run: Run) -> None:
        await run.emit(ev.StepStarted(step=self.current_step))
        before = len(self.memory.messages)
        line = ""
        try:
            line = await self.step()
            run.steps.append(f"Step {self.current_step}: {line}")
        finally:
            await self._journal_memory(run)
            await run.emit(ev.StepFinished(step=self.current_step, result=line))
        run.stuck.observe(self._trace(self.memory.messages[before:]))
        if self.state is not AgentState.FINISHED:
            if self.is_stuck():
                self.handle_stuck_state()
            else:
                run.stuck_steps = 0

    def _trace(self, stored: Sequence[Message]) -> StepTrace:
        return StepTrace(signature(stored))

    def _run_started(self, run: Run, request: str | None) -> ev.RunStarted:
        budget = run.session.ledger.budget
        timeout = run.session.settings.limits.timeout if self.timeout is None else self.timeout
        return ev.RunStarted(
            request=request,
            model=self._model_name(),
            workspace=str(run.session.workspace),
            limits=Limits(max_steps=self.max_steps, timeout=timeout, usd=budget.usd, tokens=budget.tokens),
        )

    def _model_name(self) -> str:
        return ""

    async def _settle(self, run: Run, request: str | None) -> None:
        """Make the history valid before a run; here, only take the request in."""
        if request:
            self.memory.add_message(Message.user_message(request))

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
            run.nudge = _NUDGE
        elif run.stuck_steps > self.duplicate_threshold:
            self._end(Status.STUCK)

    def _end(self, status: Status) -> None:
        self.state = AgentState.FINISHED
        if self._run is not None:
            self._run.status = status

    # ---- the end of a run

    async def _finish(self, run: Run, result: RunResult) -> None:
        """The run's last event and gate; the state that the agent is left in."""
        error = result.error
        info = ErrorInfo(type=type(error).__name__, message=str(error)) if error else None
        after = AgentState.ERROR if result.status is Status.ERROR else AgentState.IDLE
        try:
            await self._journal_memory(run)
            await run.emit(ev.StateChanged(state=after))
            await run.emit(
                ev.RunFinished(
                    status=result.status,
                    output=result.output,
                    steps=self.current_step,
                    usage=result.usage,
                    cost_usd=result.cost,
                    artifacts=result.artifacts,
                    error=info,
                )
            )
            await run.gate()
        except JournalError as failure:
            result.status, result.error = Status.ERROR, result.error or failure
            after = AgentState.ERROR
        self.state = after

    async def _journal_memory(self, run: Run) -> None:
        """Emit what memory holds and the journal does not."""
        memory = self.memory
        start = memory.journaled
        if memory.rewritten:
            await run.emit(ev.MemoryCleared())
            start = 0
        if start == len(memory.messages) and not memory.rewritten:
            return
        new = memory.messages[start:]
        memory.mark()
        for message in new:
            run.session.keep_images(message)
            await run.emit(ev.MessageAdded(message=message))

    # ---- the session

    def _open_session(self) -> Session:
        self.settings = self.settings or load_settings()
        session = Session.open(self.settings, self.workspace, self._session_id, self.ask, self.approve)
        self._session_id = session.id
        return session

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Session]:
        """The session that this agent has, else one of its own for the time of one run."""
        session = self.session or self._own_session
        if session is not None:
            yield session
            return
        self._own_session = self._open_session()
        try:
            yield self._own_session
        finally:
            await self.cleanup()

    def _meet(self, session: Session) -> None:
        """At the first run on a session: take over what its journal holds, and have our parts closed with it."""
        if session is self._met:
            return
        self._met = session
        session.on_close(self._close_parts)
        if self._journaled_in != session.id:
            self._journaled_in, self.memory.journaled = session.id, 0
            if not self.memory.messages:
                self.memory.add_messages(session.recorded.messages)
                self.memory.mark()

    async def _close_parts(self) -> None:
        """What the agent itself holds open (tools, servers); called when the session closes."""
        self._met = None

    async def cleanup(self) -> None:
        """Close the session that the agent opened; the agent can run again, on the same session id."""
        session, self._own_session = self._own_session, None
        if session is not None:
            await session.close()

    async def __aenter__(self) -> Self:
        if self.session is None and self._own_session is None:
            self._own_session = self._open_session()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.cleanup()
