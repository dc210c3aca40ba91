"""ToolCallAgent: think asks the model with tools, act runs the calls that it made."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from handwork import events as ev
from handwork.agent.asking import Asker, token_limit
from handwork.agent.base import NUDGE
from handwork.agent.context import CallIds, filled, system_of, tail_of
from handwork.agent.history import insert_results, was_cut
from handwork.agent.observe import limit_for
from handwork.agent.project import Project
from handwork.agent.react import ReActAgent
from handwork.agent.restoring import Restoring
from handwork.agent.results import arguments_of, messages_of_results, result_of
from handwork.agent.run import Run
from handwork.agent.schedule import run_in_order
from handwork.agent.settling import settle
from handwork.agent.stuck import PATIENCE, StepTrace, signature
from handwork.agent.surroundings import network_words
from handwork.agent.turn import ENDED, Turn
from handwork.errors import HandworkError, TokenLimitExceeded
from handwork.llm.base import Model
from handwork.llm.llm import LLM
from handwork.llm.tokens import TokenMeter
from handwork.schema import (
    AgentState,
    Message,
    Plan,
    Reply,
    Request,
    Role,
    RunResult,
    Status,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from handwork.session import Session
from handwork.store.past import Outcome
from handwork.tool.collection import ToolCollection, as_collection
from handwork.tool.create_chat_completion import CreateChatCompletion
from handwork.tool.result import as_text
from handwork.tool.terminate import Terminate

_CUT_TEXT = "Your last answer was cut off by the token limit. Go on from where it stopped, or answer more briefly."
_EMPTY = f"Your last answer was empty. Call a tool, or answer in text. {NUDGE}"
_CALL_A_TOOL = "Answer with a tool call; plain text is not accepted here."
_EMPTY_ENDS = 3
"""So many replies in a row with neither text nor calls end the run as stuck."""


class _CallsRequired(Exception):
    """tool_choice is REQUIRED and the model called nothing, once already."""


class ToolCallAgent(ReActAgent):
    """An agent that works with tools.

    Fields: `available_tools` (a ToolCollection, or a list of tools and functions), `tool_choices`, `special_tool_names`
    (tools that end the run), `tool_calls` (of the current step), `max_observe` (characters of one result that the model
    sees; None or 0: no limit), `text_ends_run` (an answer in text ends the run), `project_instructions` (AGENTS.md and CLAUDE.md
    in the workspace's root belong to the system prompt; read anew when a run begins).
    """

    name: str = "toolcall"
    description: str | None = "an agent that can execute tool calls."
    available_tools: ToolCollection = ToolCollection(CreateChatCompletion, Terminate)
    tool_choices: ToolChoice = ToolChoice.AUTO
    special_tool_names: list[str] = [Terminate.name]
    tool_calls: list[ToolCall] = []
    max_steps: int = 30
    max_observe: int | None = None
    text_ends_run: bool = True
    project_instructions: bool = True

    def __init__(self, **fields: Any) -> None:
        self._asker, self._ids = Asker(), CallIds()
        self._turn: Turn | None = None
        self._direct: Run | None = None
        self._project, self._restoring = Project(), Restoring()
        self._beside = ""
        """What the system prompt says beside the role's own words."""
        super().__init__(**fields)
        self.available_tools = as_collection(self.available_tools)
        self.tool_choices = _tool_choice(self.tool_choices)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "available_tools":
            value = as_collection(value)
        elif name == "tool_choices":
            value = _tool_choice(value)
        super().__setattr__(name, value)

    # ---- think

    async def think(self) -> bool:
        run = self._current()
        self.tool_calls = []
        try:
            reply = await self._ask(run)
        except Exception as error:
            if (limit := token_limit(error)) is None:
                raise
            return self._give_up(limit)
        return self._take(run, reply)

    async def _ask(self, run: Run) -> Reply:
        if run is self._direct:  # a run that begins has done it
            await self._make_ready(run.session)
        self._journal_memory(run)
        request = self._request(run.session.workspace, run.nudge, run.deadline)
        run.nudge = None
        return await self._asker.ask(run, self._model, request, self.memory)

    def _request(self, workspace: Path, nudge: str | None = None, deadline: float | None = None) -> Request:
        return Request(
            messages=self.memory.messages,
            system=system_of(self.system_prompt, self._beside, workspace),
            tools=self.available_tools.to_params(),
            tail=tail_of(filled(self.next_step_prompt, workspace), nudge),
            tool_choice=self.tool_choices,
            deadline=deadline,
        )

    @property
    def next_request(self) -> Request:
        """What the model would be asked now; `meter` guesses its tokens. Its messages are the live history."""
        session = self.session or self._own_session
        return self._request(session.workspace if session else Path(self.workspace or ".").absolute())

    @property
    def meter(self) -> TokenMeter:
        """Guesses the tokens of requests and messages, the better the more replies of the model came."""
        return self._asker.meter

    @property
    def _model(self) -> Model:
        assert self.llm is not None
        assert not isinstance(self.llm, str)
        return self.llm

    async def _make_ready(self, session: Session) -> None:
        if isinstance(self.llm, LLM):
            with suppress(HandworkError):
                await self.llm.ready()
            session.hide(self.llm.secrets)

    def _model_name(self) -> str:
        return self._model.name

    def _give_up(self, limit: TokenLimitExceeded) -> bool:
        text = f"Maximum token limit reached, cannot continue execution: {limit}"
        self.memory.add_message(Message.assistant_message(text))
        self._end(Status.TOKEN_LIMIT)
        return False

    def _take(self, run: Run, reply: Reply) -> bool:
        """Store a reply; True if there is something to act on."""
        calls = reply.tool_calls
        if calls and self.tool_choices is ToolChoice.NONE:
            run.notice("warning", "The model called tools although none were allowed; the calls were ignored.")
            calls = ()
        content = reply.content if reply.content and reply.content.strip() else None
        if not calls and content is None:
            self._note_empty(run)
            return self.tool_choices is ToolChoice.REQUIRED
        run.empty_replies = 0
        message = replace(reply, content=content, tool_calls=self._unique(calls)).to_message()
        self.memory.add_message(message)
        self.tool_calls = list(message.tool_calls)
        run.finish_reason = reply.finish_reason
        run.last_text = content or run.last_text
        self._journal_memory(run)
        return True

    def _unique(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        unique = ((call, self._ids.unique(call.id, self.memory)) for call in calls)
        return tuple(call if call.id == id else replace(call, id=id) for call, id in unique)

    def _note_empty(self, run: Run) -> None:
        run.empty_replies += 1
        run.nudge = _EMPTY
        if run.empty_replies >= _EMPTY_ENDS and not self._steering:
            self._end(Status.STUCK)

    # ---- act

    async def step(self) -> str:
        run = self._current()
        try:
            line = await super().step()
        except _CallsRequired:
            if run.corrected:
                raise ValueError("Tool calls required but none provided") from None
            run.corrected, run.nudge = True, _CALL_A_TOOL
            return "Error: Tool calls required but none provided"
        run.corrected = False
        return line

    async def act(self) -> str:
        if self.tool_calls:
            return await self.complete(self._current(), self.tool_calls, {})
        if self.tool_choices is ToolChoice.REQUIRED:
            raise _CallsRequired("Tool calls required but none provided")
        last = self.memory.messages[-1] if self.memory.messages else None
        if last is None or not last.content:
            return "No content or commands to execute"
        if self.text_ends_run and last.role is Role.ASSISTANT:
            run = self._current()
            if run.finish_reason == "length":
                run.nudge = _CUT_TEXT
            elif not self._steering or self.current_step >= self.max_steps:  # see steer()
                self.state = AgentState.FINISHED
        return last.content

    async def complete(
        self, run: Run, calls: Sequence[ToolCall], given: dict[str, Outcome], at: int | None = None
    ) -> str:
        """Run the calls whose outcome is not given, then give each its tool message, in order, right behind the calls."""
        turn = self._turn = Turn(
            run, self, calls, limit=limit_for(self.max_observe, len(calls)), cut=was_cut(self.memory, calls)
        )
        await run_in_order([await turn.prepared(call) for call in calls if call.id not in given], turn)
        for call in calls:
            if (known := given.get(call.id)) is not None:  # it may have been the answer, or the end
                await self.handle_result(call.function.name, result_of(known), arguments_of(call))
        outcomes = [given.get(call.id) or turn.outcomes.get(call.id) or ENDED for call in calls]
        for outcome in outcomes:
            run.artifacts += outcome.artifacts
        insert_results(self.memory, calls, messages_of_results(calls, outcomes), at)
        self._journal_memory(run)
        return "\n\n".join(outcome.observation for outcome in outcomes)

    async def execute_tool(self, command: ToolCall) -> str:
        """Run one call: name, arguments, policy, effect, special tool; returns what the model sees and never raises for
        the model's faults."""
        turn = self._turn
        if turn is None or turn.run is not self._current() or command not in turn.calls:
            turn = Turn(self._current(), self, [command], limit=limit_for(self.max_observe, 1), cut=False)
        return await turn.execute(command)

    async def handle_result(self, name: str, result: ToolResult, arguments: dict[str, Any]) -> None:
        """What follows an executed call: the hooks, once."""
        tool = self.available_tools.get_tool(name)
        if isinstance(tool, CreateChatCompletion) and result.details and not result.error:
            run = self._current()
            run.value = tool.value(result.details)
            run.answer = as_text(run.value)
        self._tell_plan(result)
        self._restoring.know(self._current().session)
        await self._handle_special_tool(name, result, arguments=arguments)

    def _tell_plan(self, result: ToolResult) -> None:
        """A result whose details are a plan is told as plan_changed; {} when the plan was given up."""
        run = self._current()
        if (plan := Plan.from_details(result.details)) is not None:
            run.emit(ev.PlanChanged(plan=run.session.masked(plan.to_dict())))
        elif result.details and "deleted" in result.details and result.details.get("plan", "") is None:
            run.emit(ev.PlanChanged(plan={}))

    async def _handle_special_tool(self, name: str, result: Any, **kwargs: Any) -> None:
        """Called once after each executed call; a special tool that should finish the run sets FINISHED."""
        if not self._is_special_tool(name) or result.error:
            return
        if not self._should_finish_execution(name=name, result=result, **kwargs):
            return
        failed = (kwargs.get("arguments") or {}).get("status") == "failure"
        last = next((m for m in reversed(self.memory.messages) if m.role is Role.ASSISTANT), None)
        self._current().beside = last.content if last else None
        self._end(Status.FAILED if failed else Status.FINISHED)

    def _should_finish_execution(self, **kwargs: Any) -> bool:
        """Whether a special tool's call ends the run."""
        return True

    def _is_special_tool(self, name: str) -> bool:
        return name.lower() in (special.lower() for special in self.special_tool_names)

    @property
    def ended(self) -> bool:
        """Whether a call has ended the run: nothing more is started."""
        return self.state is AgentState.FINISHED

    # ---- around the run

    def _trace(self, stored: Sequence[Message]) -> StepTrace:
        turn, self._turn = self._turn, None
        if turn is None:
            return super()._trace(stored)
        if turn.waited >= PATIENCE:
            return StepTrace(None)
        all_failed = len(turn.faults) == len(turn.calls)
        return StepTrace(signature(stored), frozenset(turn.faults.values()) if all_failed else frozenset())

    async def _settle(self, run: Run, request: str | None) -> str | None:
        request = await settle(self, run, request)
        self._turn = None
        if request:  # what old calls ended or answered was the old run
            run.status = run.beside = run.answer = run.value = None
            self.state = AgentState.RUNNING
        return request

    def _meet(self, session: Session) -> None:
        super()._meet(session)
        self._project.read(session, wanted=self.project_instructions)
        place = ""
        if any(tool.sandboxed for tool in self.available_tools):
            _ = session.sandbox  # what is wrong with it or the workspace is told before the first request
            place = network_words(session.place.settings)
        self._beside = "\n\n".join(filter(None, (place, self._project.text)))
        self._restoring.catch_up(self.available_tools, session)

    def _finish(self, run: Run, result: RunResult) -> None:
        super()._finish(run, result)
        self._restoring.know(run.session)

    async def _close_parts(self, session: Session) -> None:
        await super()._close_parts(session)
        self._direct = None
        for tool in self.available_tools:
            await session.close_part(tool.cleanup)

    def _current(self) -> Run:
        """The run that goes on, else one for think(), act() or execute_tool() called directly; it ends with the session."""
        if self._run is not None:
            return self._run
        if self._direct is None:
            session = self.session or self._own_session or self._open_session()
            self._meet(session)
            self._direct = self._begin(session)
            self._direct.deadline = None  # it lives as long as the session
        return self._direct


def _tool_choice(value: Any) -> ToolChoice:
    try:
        return ToolChoice(value)
    except ValueError:
        raise ValueError(f"Invalid tool_choice: {value}") from None
