"""ToolCallAgent: think asks the model with tools, act runs the calls that it made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from handwork.agent.asking import Asker, token_limit
from handwork.agent.context import CallIds, tail_of
from handwork.agent.execution import Execution
from handwork.agent.observe import limit_for, observe
from handwork.agent.react import ReActAgent
from handwork.agent.run import Run
from handwork.agent.schedule import Prepared, run_in_order
from handwork.agent.settling import settle
from handwork.agent.stuck import PATIENCE, StepTrace, signature
from handwork.errors import TokenLimitExceeded
from handwork.llm.base import Model
from handwork.schema import (
    AgentState,
    Message,
    Reply,
    Request,
    Role,
    Status,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from handwork.session import Session
from handwork.store.recorded import Outcome
from handwork.tool.collection import ToolCollection
from handwork.tool.create_chat_completion import CreateChatCompletion
from handwork.tool.terminate import Terminate

_CUT_TEXT = "Your last answer was cut off by the token limit. Go on from where it stopped, or answer more briefly."
_EMPTY = "Your last answer was empty. Call a tool, or answer in text."
_CALL_A_TOOL = "Answer with a tool call; plain text is not accepted here."
_EMPTY_ENDS = 3
"""So many replies in a row with neither text nor calls end the run as stuck."""


class _CallsRequired(ValueError):
    """tool_choice is REQUIRED and the model called nothing."""


class ToolCallAgent(ReActAgent):
    """An agent that works with tools.

    Fields: `available_tools` (a ToolCollection, or a list of tools and functions), `tool_choices`, `special_tool_names`
    (tools that end the run), `tool_calls` (of the current step), `max_observe` (characters of one result that the model
    sees; None or 0: no limit), `text_ends_run` (an answer in text ends the run).
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

    def initialize_agent(self) -> None:
        super().initialize_agent()
        if not isinstance(self.available_tools, ToolCollection):
            self.available_tools = ToolCollection(*self.available_tools)
        try:
            self.tool_choices = ToolChoice(self.tool_choices)
        except ValueError:
            raise ValueError(f"Invalid tool_choice: {self.tool_choices}") from None
        self._asker, self._ids = Asker(), CallIds()
        self._execution = Execution()
        self._finish_reason = "stop"
        self._empty_replies = 0
        self._corrected = False
        self._direct: Run | None = None
        self._outcomes_of_step: list[Outcome] = []

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
        return await self._take(run, reply)

    async def _ask(self, run: Run) -> Reply:
        await self._journal_memory(run)
        request = Request(
            messages=self.memory.messages,
            system=self._filled(self.system_prompt, run.session),
            tools=self.available_tools.to_params(),
            tail=tail_of(self._filled(self.next_step_prompt, run.session), run.nudge),
            tool_choice=self.tool_choices,
            deadline=run.deadline,
        )
        run.nudge = None
        return await self._asker.ask(run, self._model, request)

    @property
    def ended(self) -> bool:
        """Whether a call has ended the run: nothing more is started."""
        return self.state is AgentState.FINISHED

    @property
    def _model(self) -> Model:
        assert self.llm is not None
        assert not isinstance(self.llm, str)
        return self.llm

    def _model_name(self) -> str:
        return self._model.name

    @staticmethod
    def _filled(prompt: str | None, session: Session) -> str | None:
        return prompt.replace("{directory}", str(session.workspace)) if prompt else None

    def _give_up(self, limit: TokenLimitExceeded) -> bool:
        text = f"Maximum token limit reached, cannot continue execution: {limit}"
        self.memory.add_message(Message.assistant_message(text))
        self._end(Status.TOKEN_LIMIT)
        return False

    async def _take(self, run: Run, reply: Reply) -> bool:
        """Store a reply; True if there is something to act on."""
        calls = reply.tool_calls
        if calls and self.tool_choices is ToolChoice.NONE:
            await run.notice("warning", "The model called tools although none were allowed; the calls were ignored.")
            calls = ()
        content = reply.content if reply.content and reply.content.strip() else None
        required = self.tool_choices is ToolChoice.REQUIRED
        if not calls and content is None:
            self._note_empty(run)
            return required
        self._empty_replies = 0
        message = replace(reply, content=content, tool_calls=self._unique(calls)).to_message()
        self.memory.add_message(message)
        self.tool_calls = list(message.tool_calls)
        self._finish_reason = reply.finish_reason
        run.last_text = content or run.last_text
        await self._journal_memory(run)
        return True

    def _unique(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        unique = ((call, self._ids.unique(call.id, self.memory)) for call in calls)
        return tuple(call if call.id == id else replace(call, id=id) for call, id in unique)

    def _note_empty(self, run: Run) -> None:
        self._empty_replies += 1
        run.nudge = _EMPTY
        if self._empty_replies >= _EMPTY_ENDS:
            self._end(Status.STUCK)

    # ---- act

    async def step(self) -> str:
        try:
            line = await super().step()
        except _CallsRequired as error:
            if self._corrected:
                raise
            self._corrected = True
            self._current().nudge = _CALL_A_TOOL
            return f"Error: {error}"
        self._corrected = False
        return line

    async def act(self) -> str:
        if self.tool_calls:
            return await self.complete(self._current(), self.tool_calls)
        if self.tool_choices is ToolChoice.REQUIRED:
            raise _CallsRequired("Tool calls required but none provided")
        last = self.memory.messages[-1] if self.memory.messages else None
        if last is None or not last.content:
            return "No content or commands to execute"
        if self.text_ends_run and last.role is Role.ASSISTANT:
            if self._finish_reason == "length":
                self._current().nudge = _CUT_TEXT
            else:
                self.state = AgentState.FINISHED
        return last.content

    async def complete(self, run: Run, calls: Sequence[ToolCall], at: int | None = None) -> str:
        """Run the calls that have no outcome yet, then give each its tool message, in order; at the end of memory, or at `at`."""
        execution = self._execution
        execution.limit = limit_for(self.max_observe, len(calls))
        execution.cut = self._was_cut(calls)
        todo = [
            await execution.prepare(run, call, self.available_tools, self._is_special_tool)
            for call in calls
            if call.id not in execution.outcomes
        ]
        await run_in_order(todo, self._perform, lambda: not self.ended)
        outcomes = [execution.take(call.id) for call in calls]
        messages = [_tool_message(call, outcome) for call, outcome in zip(calls, outcomes, strict=True)]
        messages += [
            _image_message(call, outcome) for call, outcome in zip(calls, outcomes, strict=True) if outcome.images
        ]
        if at is None:
            self.memory.add_messages(messages)
        else:
            self.memory.messages[at:at] = messages
        for outcome in outcomes:
            run.artifacts += outcome.artifacts
        self._outcomes_of_step = outcomes
        return "\n\n".join(outcome.observation for outcome in outcomes)

    def _was_cut(self, calls: Sequence[ToolCall]) -> bool:
        ids = {call.id for call in calls}
        for message in reversed(self.memory.messages):
            if any(call.id in ids for call in message.tool_calls):
                return message.finish_reason == "length"
        return False

    async def _perform(self, prepared: Prepared, turn: Callable[[], Awaitable[None]]) -> None:
        call = prepared.call
        self._execution.turns[call.id] = turn
        text = await self.execute_tool(call)
        if call.id not in self._execution.outcomes:  # execute_tool was overridden: its text is all there is
            seen = await observe(
                text, self._execution.limit, self._current().session, name=call.function.name, call_id=call.id
            )
            self._execution.outcomes[call.id] = Outcome(seen)

    async def execute_tool(self, command: ToolCall) -> str:
        """Run one call: name, arguments, policy, effect, special tool; returns what the model sees and never raises for
        the model's faults."""
        run = self._current()
        if run is self._direct:
            self._execution.limit = limit_for(self.max_observe, 1)
        return await self._execution.execute(run, command, self.available_tools, self)

    async def handle_result(self, name: str, result: ToolResult, arguments: dict[str, Any]) -> None:
        """What follows an executed call: the hooks, once."""
        tool = self.available_tools.get_tool(name)
        if isinstance(tool, CreateChatCompletion) and result.details and not result.error:
            run = self._current()
            run.answer, run.value = str(result), tool.value(result.details)
        await self._handle_special_tool(name, result, arguments=arguments)

    async def _handle_special_tool(self, name: str, result: Any, **kwargs: Any) -> None:
        """Called once after each executed call; a special tool that should finish the run sets FINISHED."""
        if not self._is_special_tool(name) or not self._should_finish_execution(name=name, result=result, **kwargs):
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

    # ---- around the run

    def _trace(self, stored: Sequence[Message]) -> StepTrace:
        outcomes = self._outcomes_of_step
        self._outcomes_of_step = []
        waited = any(outcome.seconds >= PATIENCE for outcome in outcomes)
        faults = frozenset(outcome.fault for outcome in outcomes if outcome.fault)
        return StepTrace(None if waited else signature(stored), frozenset() if waited else faults)

    async def _settle(self, run: Run, request: str | None) -> None:
        request = await settle(self, self._execution, run, request)
        if request and self.state is AgentState.FINISHED:  # an old call ended the old run, not this one
            self.state, run.status, run.beside = AgentState.RUNNING, None, None
        await super()._settle(run, request)

    def _meet(self, session: Session) -> None:
        if session is self._met:
            return
        super()._meet(session)
        if any(tool.sandboxed for tool in self.available_tools):
            _ = session.sandbox  # what is wrong with it or the workspace is told before the first request
        for tool in self.available_tools:
            session.on_close(tool.cleanup)
        self._execution.resume(session.recorded)
        for name, details in session.recorded.details:
            if (known := self.available_tools.get_tool(name)) is not None:
                known.restore(details)

    async def _close_parts(self) -> None:
        await super()._close_parts()
        self._direct = None

    def _begin(self, session: Session) -> Run:
        run = super()._begin(session)
        run.history = self.memory.messages
        return run

    def _current(self) -> Run:
        """The run that goes on, else one for think(), act() or execute_tool() called directly; it ends with the session."""
        if self._run is not None:
            return self._run
        if self._direct is None:
            if (session := self.session or self._own_session) is None:
                session = self._own_session = self._open_session()
            self._meet(session)
            self._direct = self._begin(session)
        return self._direct


def _tool_message(call: ToolCall, outcome: Outcome) -> Message:
    name = call.function.name or "unknown"
    return Message.tool_message(outcome.observation, name, call.id, is_error=outcome.is_error)


def _image_message(call: ToolCall, outcome: Outcome) -> Message:
    text = f"Image returned by {call.function.name}:"
    return Message(role=Role.USER, content=text, images=outcome.images)
