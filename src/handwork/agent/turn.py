"""The calls of one reply on their way to their results: understand, permit, journal the intent, run, journal the result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from handwork import events as ev
from handwork.agent.observe import outcome_of
from handwork.agent.permission import Wanted, denial
from handwork.agent.questions import put
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
from handwork.schema import JSON, Action, Memory, Question, ToolCall, ToolResult
from handwork.schema.visible import seen
from handwork.store.past import Outcome
from handwork.tool.arguments import prepare
from handwork.tool.base import Tool, ToolContext
from handwork.tool.collection import ToolCollection
from handwork.tool.collection import call as call_tool
from handwork.tool.function import FunctionTool
from handwork.tool.wording import joined

ENDED = Outcome("Not executed: the run has ended")
_CUT = (
    "Error: your reply was cut off by the token limit, so its calls were not executed. "
    "Send less at once: for a large file, create it in parts."
)
_OURS = (BudgetExceeded, ConfigError, JournalError, SandboxUnavailable, Waiting)
"""Errors that are not the model's to read: they end the run."""
_NOT_BEGUN = (ConfigError, SandboxUnavailable)
_MANY = 128
"""Calls of one reply that are looked at; a reply with more is answered with an error."""


@dataclass(frozen=True, slots=True)
class Understood:
    """A call whose tool exists and whose arguments fit."""

    tool: Tool
    arguments: dict[str, JSON]
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that does not run: what the model reads instead, and the kind of fault, for stuck detection."""

    text: str
    fault: str


class Host(Protocol):
    """What a turn needs of its agent: the tools, the hooks, and whether the run goes on."""

    available_tools: ToolCollection
    memory: Memory

    @property
    def ended(self) -> bool: ...

    def _is_special_tool(self, name: str) -> bool: ...

    async def execute_tool(self, command: ToolCall) -> str: ...

    async def handle_result(self, name: str, result: ToolResult, arguments: dict[str, Any]) -> None: ...


class Turn:
    """See the module. `outcomes` are the results so far; `faults` and `waited` are what stuck detection asks for."""

    def __init__(self, run: Run, host: Host, calls: Sequence[ToolCall], *, limit: int, cut: bool) -> None:
        self.run, self.calls = run, calls
        self.outcomes: dict[str, Outcome] = {}
        self.faults: dict[str, str] = {}
        self.waited = 0.0
        self._host, self._limit, self._cut = host, limit, cut
        self._known: dict[str, Understood | Refused] = {}
        self._permits: dict[str, str | None] = {}

    # ---- for the schedule

    async def prepared(self, call: ToolCall) -> Prepared:
        """Read a call for the schedule."""
        known = self._known[call.id] = await self._understand(call)
        if isinstance(known, Refused):
            return Prepared(call, idle=True)
        alone = self._host._is_special_tool(call.function.name) or any(a.kind in ("ask", "end") for a in known.actions)
        return Prepared(call, known.actions, alone)

    async def permit(self, call: ToolCall) -> None:
        known = self._known[call.id]
        if isinstance(known, Understood):
            self._permits[call.id] = await self._denial(call, known)

    async def perform(self, call: ToolCall) -> None:
        text = await self._host.execute_tool(call)
        if call.id not in self.outcomes:  # execute_tool was overridden: its text is all there is
            session = self.run.session
            self.outcomes[call.id] = await outcome_of(session, call, ToolResult(), self._limit, text=text)

    @property
    def goes_on(self) -> bool:
        return not self._host.ended and not self.run.closing

    # ---- one call

    async def execute(self, call: ToolCall) -> str:
        """Run one call and keep its outcome; returns the observation."""
        known = self._known.get(call.id) or await self._understand(call)
        if isinstance(known, Understood):
            if call.id not in self._permits:
                self._permits[call.id] = await self._denial(call, known)
            reason = self._permits.pop(call.id)
            if reason is None:
                return await self._effect(call, known)
            known = Refused(reason, f"denied {call.function.name}")
        outcome = self.outcomes[call.id] = Outcome(seen(known.text).text, is_error=True)
        self.faults[call.id] = known.fault
        self.run.emit(ev.ToolCallStarted(call=call, actions=()))
        self.run.emit(_finished(call, outcome, 0.0))
        return outcome.observation

    async def _understand(self, call: ToolCall) -> Understood | Refused:
        name, tools = call.function.name, self._host.available_tools
        if not name:
            return Refused("Error: Invalid command format", "no name")
        if self._cut:
            return Refused(_CUT, "cut")
        if len(self.calls) > _MANY:
            return Refused(f"Error: {len(self.calls)} calls in one reply; at most {_MANY} are run", "too many")
        if (tool := tools.get_tool(name)) is None:
            near = tools.nearest(name) or [tool.name for tool in tools]
            hint = f"did you mean {', '.join(near)}?" if tools.nearest(name) else f"there are: {', '.join(near)}"
            return Refused(f"Error: Unknown tool '{name}'; {hint}", f"unknown {name}")
        try:
            arguments = prepare(tool, call.function.arguments)
            actions = [await self._resolved(tool, action) for action in tool.actions(arguments)]
        except ArgumentsError as error:
            return Refused(_unfit(name, error), f"arguments of {name}")
        except _OURS:
            raise
        except Exception as error:  # a tool call is a named boundary: a tool's own actions() may raise
            return Refused(_problem(name, error), f"{name}: {error}")
        return Understood(tool, arguments, tuple(actions))

    async def _resolved(self, tool: Tool, action: Action) -> Action:
        """An action on the real path, so that two names of one file are one resource."""
        if not tool.sandboxed or action.kind not in ("read", "write"):
            return action
        if action.resource == "*" or "://" in action.resource:  # no path: an MCP server's own
            return action
        try:
            return replace(action, resource=await self.run.session.sandbox.resolve(action.resource))
        except (OSError, ValueError):
            return action  # the tool will say what is wrong with the path

    async def _denial(self, call: ToolCall, known: Understood) -> str | None:
        return await denial(self.run, Wanted(call, known.tool, known.arguments, known.actions))

    async def _effect(self, call: ToolCall, known: Understood) -> str:
        run, name = self.run, call.function.name
        began = time.monotonic()
        run.go_on()
        run.emit(ev.ToolCallStarted(call=call, actions=known.actions))
        ending: ev.ToolCallFinished | None = None
        begun = False
        try:
            await run.gate()
            begun = True
            result, problem = await self._run_tool(call, known)
            if known.tool.sandboxed:
                result = _noted(result, await run.session.place.after_call())
            seconds = time.monotonic() - began
            outcome = await outcome_of(run.session, call, result, self._limit, problem=problem)
            ending = _finished(call, outcome, seconds)
        except BaseException as error:
            if isinstance(known.tool, FunctionTool) and known.tool.running:
                run.session.notify("warning", f"The tool {name} cannot be stopped and was left behind.")
            begun = begun and not isinstance(error, _NOT_BEGUN)
            ending = _unfinished(call, error, time.monotonic() - began, begun=begun)
            raise
        finally:
            if ending is not None:
                run.emit(ending)
        self._keep(call, outcome, problem or result.error, seconds)
        run.session.write_soon()  # and not a gate: after the last call of a step, the next request's is here at once
        run.go_on()
        await self._host.handle_result(name, _seen(result, problem), known.arguments)
        return outcome.observation

    def _keep(self, call: ToolCall, outcome: Outcome, error: str | None, seconds: float) -> None:
        self.outcomes[call.id] = outcome
        self.waited = max(self.waited, seconds)
        if error:
            self.faults[call.id] = f"{call.function.name}: {error}"

    async def _run_tool(self, call: ToolCall, known: Understood) -> tuple[ToolResult, str]:
        """The tool's result, and in words the exception that it raised."""
        name = call.function.name
        try:
            return await call_tool(known.tool, known.arguments, self._context(call)), ""
        except _OURS:
            raise
        except ToolError as error:
            return ToolResult(error=error.message), ""
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            return ToolResult(), _problem(name, error)  # the tool's own, not ours
        except BaseException as error:  # a tool call is a named boundary, whatever a tool may raise
            return ToolResult(), _problem(name, error)

    def _context(self, call: ToolCall) -> ToolContext:
        run, session = self.run, self.run.session

        async def progress(text: str) -> None:
            if session.heard:
                run.emit(ev.ToolOutputDelta(call_id=call.id, text=session.masked(text)))

        async def ask(text: str) -> str:
            return await put(run, Question(id=call.id, text=session.masked(text), call_id=call.id))

        return ToolContext(
            call_id=call.id,
            sandbox=session.sandbox,
            ask=ask,
            progress=progress,
            save_artifact=session.save_artifact,
            resource=session.resource,
            history=self._host.memory.messages,
            deadline=run.deadline,
            clock=session.clock,
            forbids=lambda path: session.grants.forbids_reading(path, session.sandbox.workspace),
        )


def _finished(call: ToolCall, outcome: Outcome, seconds: float) -> ev.ToolCallFinished:
    return ev.ToolCallFinished(
        call_id=call.id,
        observation=outcome.observation,
        details=outcome.details,
        is_error=outcome.is_error,
        artifacts=outcome.artifacts,
        images=outcome.images,
        seconds=round(seconds, 6),
    )


def _unfinished(call: ToolCall, error: BaseException, seconds: float, *, begun: bool) -> ev.ToolCallFinished:
    """The end of a call that came to no result; settling decides about it at the next run."""
    why = str(error) if isinstance(error, _OURS) else "interrupted before it was done"
    return ev.ToolCallFinished(
        call_id=call.id,
        observation=why,
        is_error=True,
        seconds=round(seconds, 6),
        ending="interrupted" if begun else "not_begun",
    )


def _noted(result: ToolResult, notes: Sequence[str]) -> ToolResult:
    return replace(result, system=joined((result.system, *notes))) if notes else result


def _seen(result: ToolResult, problem: str) -> ToolResult:
    """The result as the hooks get it: what a tool raised is an error there, too."""
    return ToolResult(error=problem.removeprefix("Error: ")) if problem else result


def _problem(name: str, error: BaseException) -> str:
    return f"Error: ⚠️ Tool '{name}' encountered a problem: {str(error) or type(error).__name__}"


def _unfit(name: str, error: ArgumentsError) -> str:
    if error.kind == "json":
        return f"Error: Error parsing arguments for {name}: {error.message}"
    return f"Error: Invalid arguments for {name}: {error.message}"
