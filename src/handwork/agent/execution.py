"""One call from its text to its outcome: understand, permit, journal the intent, run, journal the result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from handwork import events as ev
from handwork.agent.observe import observe, success_text
from handwork.agent.permission import denial
from handwork.agent.run import Run
from handwork.agent.schedule import Prepared
from handwork.errors import (
    ArgumentsError,
    BudgetExceeded,
    ConfigError,
    JournalError,
    SandboxUnavailable,
    ToolError,
    Waiting,
)
from handwork.schema import JSON, Action, Image, Question, ToolCall, ToolResult
from handwork.store.recorded import Outcome, Recorded
from handwork.tool.arguments import prepare
from handwork.tool.base import Tool, ToolContext
from handwork.tool.collection import ToolCollection
from handwork.tool.collection import call as call_tool
from handwork.tool.function import FunctionTool

_ENDED = "Not executed: the run has ended"
_CUT = (
    "Error: your reply was cut off by the token limit, so its calls were not executed. "
    "Send less at once: for a large file, create it in parts."
)
_PATHS = ("read", "write")
_OURS = (BudgetExceeded, ConfigError, JournalError, SandboxUnavailable, Waiting)
"""Errors that are not the model's to read: they end the run."""

Turn = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Understood:
    """A call whose tool exists and whose arguments fit."""

    tool: Tool
    arguments: dict[str, JSON]
    actions: tuple[Action, ...]


class Host(Protocol):
    """What execution needs of its agent: the hooks after a call, and whether the run goes on."""

    @property
    def ended(self) -> bool: ...

    async def handle_result(self, name: str, result: ToolResult, arguments: dict[str, Any]) -> None: ...


class Execution:
    """The calls of an agent that are under way or whose results are not yet in memory."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.started: dict[str, tuple[Action, ...]] = {}
        self.turns: dict[str, Turn] = {}
        self.pending: Question | None = None
        """The question that ended the last run as waiting."""
        self.given_answer: str | None = None
        """The human's answer to it, if the next run brought one."""
        self.limit = 0
        self.cut = False
        self._understood: dict[str, Understood | Outcome] = {}

    def resume(self, recorded: Recorded) -> None:
        """Take over what a journal says of earlier calls."""
        self.outcomes.update(recorded.outcomes)
        self.started.update({id: event.actions for id, event in recorded.started.items()})
        self.pending = recorded.question

    def take(self, call_id: str) -> Outcome:
        """The outcome of a call, which now goes into memory."""
        self.started.pop(call_id, None)
        return self.outcomes.pop(call_id, None) or Outcome(_ENDED)

    async def prepare(
        self, run: Run, call: ToolCall, tools: ToolCollection, is_special: Callable[[str], bool]
    ) -> Prepared:
        """Read a call for the schedule; what was understood waits for `execute`."""
        understood = await self._understand(run, call, tools)
        self._understood[call.id] = understood
        if isinstance(understood, Outcome):
            return Prepared(call, (), alone=False)
        alone = is_special(call.function.name) or any(action.kind in ("ask", "end") for action in understood.actions)
        return Prepared(call, understood.actions, alone)

    async def execute(self, run: Run, call: ToolCall, tools: ToolCollection, host: Host) -> str:
        """Run one call and keep its outcome; returns the observation."""
        understood = self._understood.pop(call.id, None) or await self._understand(run, call, tools)
        turn = self.turns.pop(call.id, None)
        if isinstance(understood, Understood):
            contained = run.session.sandbox.contained if understood.tool.sandboxed else True
            reason = await denial(run, call, understood.actions, contained=contained)
            if turn is not None:
                await turn()
            if host.ended:
                return self._keep(call, Outcome(_ENDED))
            if reason is None:
                return await self._effect(run, call, understood, host)
            understood = Outcome(reason, is_error=True, fault="denied")
        await self._tell(run, call, (), understood)
        return self._keep(call, understood)

    def _keep(self, call: ToolCall, outcome: Outcome) -> str:
        self.outcomes[call.id] = outcome
        return outcome.observation

    # ---- understanding

    async def _understand(self, run: Run, call: ToolCall, tools: ToolCollection) -> Understood | Outcome:
        name = call.function.name
        if not name:
            return Outcome("Error: Invalid command format", is_error=True, fault="arguments")
        if self.cut:
            return Outcome(_CUT, is_error=True, fault="arguments")
        tool = tools.get_tool(name)
        if tool is None:
            near = tools.nearest(name)
            hint = (
                f"; did you mean {', '.join(near)}?"
                if near
                else f"; there are: {', '.join(tool.name for tool in tools)}"
            )
            return Outcome(f"Error: Unknown tool '{name}'{hint}", is_error=True, fault="arguments")
        try:
            arguments = prepare(tool, call.function.arguments)
            actions = [await self._resolved(run, tool, action) for action in tool.actions(arguments)]
        except ArgumentsError as error:
            return Outcome(_unfit(name, error), is_error=True, fault="arguments")
        except Exception as error:  # a tool call is a named boundary: a tool's own actions() may raise
            return Outcome(_problem(name, error), is_error=True, fault=f"{name}: {error}")
        return Understood(tool, arguments, tuple(actions))

    @staticmethod
    async def _resolved(run: Run, tool: Tool, action: Action) -> Action:
        """An action on the real path, so that two names of one file are one resource."""
        if not tool.sandboxed or action.kind not in _PATHS or action.resource == "*":
            return action
        try:
            return replace(action, resource=await run.session.sandbox.resolve(action.resource))
        except (OSError, ValueError):
            return action  # the tool will say what is wrong with the path

    # ---- the effect

    async def _effect(self, run: Run, call: ToolCall, understood: Understood, host: Host) -> str:
        self.started[call.id] = understood.actions
        await run.emit(ev.ToolCallStarted(call=call, actions=understood.actions))
        await run.gate()
        began = time.monotonic()
        try:
            result, fault = await self._run_tool(run, call, understood)
        except BaseException as error:
            if isinstance(tool := understood.tool, FunctionTool) and tool.running:
                run.session.notify("warning", f"The tool {tool.name} cannot be stopped and was left behind.")
            await self._interrupted(run, call, time.monotonic() - began, error)
            raise
        outcome = await self._outcome(run, call, result, fault)
        outcome.seconds = time.monotonic() - began
        self._keep(call, outcome)
        await run.emit(_finished(call, outcome))
        run.session.write_soon()  # and not a gate: after the last call of a step, the next request's is here at once
        await host.handle_result(call.function.name, result, understood.arguments)
        return outcome.observation

    async def _run_tool(self, run: Run, call: ToolCall, understood: Understood) -> tuple[ToolResult, str]:
        """The tool's result, and the text of the exception that it raised."""
        tool = understood.tool
        try:
            context = self._context(run, call) if tool.wants_context else None
            return await call_tool(tool, understood.arguments, context), ""
        except _OURS:
            raise
        except ToolError as error:
            return ToolResult(error=error.message), ""
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            return ToolResult(), _problem(call.function.name, error)  # the tool's own, not ours
        except (Exception, SystemExit) as error:  # a tool call is a named boundary
            return ToolResult(), _problem(call.function.name, error)

    async def _outcome(self, run: Run, call: ToolCall, result: ToolResult, problem: str) -> Outcome:
        name, session = call.function.name, run.session
        text = problem or success_text(name, result)
        text = await observe(session.masked(text), self.limit, session, name=name, call_id=call.id)
        if result.system:
            text = f"{text}\n({session.masked(result.system)})"
        images = (Image.from_base64(result.base64_image),) if result.base64_image else ()
        error = problem or result.error
        return Outcome(
            text,
            is_error=bool(error),
            images=images,
            details=result.details,
            artifacts=result.artifacts,
            fault=f"{name}: {error}" if error else "",
        )

    def _context(self, run: Run, call: ToolCall) -> ToolContext:
        session = run.session

        async def progress(text: str) -> None:
            if session.heard:
                await run.emit(ev.ToolOutputDelta(call_id=call.id, text=text))

        return ToolContext(
            call_id=call.id,
            sandbox=session.sandbox,
            ask=lambda text: self._ask(run, call, text),
            progress=progress,
            save_artifact=session.save_artifact,
            resource=session.resource,
            history=run.history,
            deadline=run.deadline,
        )

    async def _ask(self, run: Run, call: ToolCall, text: str) -> str:
        question = Question(id=call.id, text=text, call_id=call.id)
        if self.pending is None or self.pending.id != call.id:
            self.pending = question
            await run.emit(ev.QuestionAsked(id=question.id, question=question))
            await run.gate()
        answer, self.given_answer = self.given_answer, None
        if answer is None:
            answer = await run.session.ask(question)
        self.pending = None
        await run.emit(ev.QuestionAnswered(id=question.id, answer=answer))
        return answer

    # ---- what is told

    async def _interrupted(self, run: Run, call: ToolCall, seconds: float, error: BaseException) -> None:
        """Close the pair of a call that came to no result; settling decides about it at the next run."""
        why = str(error) if isinstance(error, _OURS) else "interrupted before it was done"
        details: dict[str, JSON] = {"interrupted": True}
        if isinstance(error, (SandboxUnavailable, ConfigError)):  # it never got as far as an effect
            self.started.pop(call.id, None)
            details["began"] = False
        outcome = Outcome(why, is_error=True, details=details, seconds=seconds)
        await run.emit(_finished(call, outcome))

    @staticmethod
    async def _tell(run: Run, call: ToolCall, actions: tuple[Action, ...], outcome: Outcome) -> None:
        """A call that had no effect, as a pair of events like any other."""
        await run.emit(ev.ToolCallStarted(call=call, actions=actions))
        await run.emit(_finished(call, outcome))


def _finished(call: ToolCall, outcome: Outcome) -> ev.ToolCallFinished:
    return ev.ToolCallFinished(
        call_id=call.id,
        observation=outcome.observation,
        details=outcome.details,
        is_error=outcome.is_error,
        artifacts=outcome.artifacts,
        seconds=round(outcome.seconds, 6),
    )


def _problem(name: str, error: BaseException) -> str:
    return f"Error: ⚠️ Tool '{name}' encountered a problem: {str(error) or type(error).__name__}"


def _unfit(name: str, error: ArgumentsError) -> str:
    if error.kind == "json":
        return f"Error: Error parsing arguments for {name}: {error.message}"
    return f"Error: Invalid arguments for {name}: {error.message}"
