"""Making a history valid before a run: every call gets its result (CONTRACT A14)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from handwork import events as ev
from handwork.agent.execution import Execution
from handwork.agent.run import Run
from handwork.schema import Memory, Message, Question, Role, ToolCall
from handwork.store.recorded import Outcome

_UNKNOWN = "Outcome unknown: the call had started when the run was interrupted; check what it did before you repeat it"
_SKIPPED = "Outcome unknown: the call was interrupted, and the user chose not to run it again"
_LOST = "Outcome unknown: no result of this call was recorded"


class Settles(Protocol):
    """What settling needs of its agent."""

    memory: Memory

    async def complete(self, run: Run, calls: Sequence[ToolCall], at: int | None = None) -> str: ...


def unanswered(messages: Sequence[Message]) -> Iterator[tuple[int, tuple[ToolCall, ...]]]:
    """For each assistant message with calls that lack a result, newest first: where the results belong, and the calls."""
    answered: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role is Role.TOOL and message.tool_call_id:
            answered.add(message.tool_call_id)
        missing = tuple(call for call in message.tool_calls if call.id not in answered)
        if missing:
            end = index + 1
            while end < len(messages) and messages[end].role is Role.TOOL:
                end += 1
            yield end, missing


async def settle(agent: Settles, execution: Execution, run: Run, request: str | None) -> str | None:
    """Answer every open call; returns the request, or None if it was the answer to a waiting question.

    The last turn's calls: one that never started runs now, one that started is repeated only if all its actions are
    repeatable, else the human decides. Calls of older turns, which other requests have passed by, are only answered.
    """
    open_turns = list(unanswered(agent.memory.messages))
    if not open_turns:
        execution.pending = None
        return request
    for _, calls in open_turns[1:]:
        for call in calls:
            execution.outcomes.setdefault(call.id, Outcome(_LOST, is_error=True))
    if execution.pending is not None and request and any(c.id == execution.pending.call_id for c in open_turns[0][1]):
        execution.given_answer, request = request, None
    for at, calls in open_turns:
        await _decide_started(execution, run, calls)
        last = at == len(agent.memory.messages)
        await agent.complete(run, calls, None if last else at)
    await run.emit(ev.RunResumed(settled=tuple(call.id for _, calls in reversed(open_turns) for call in calls)))
    return request


async def _decide_started(execution: Execution, run: Run, calls: Sequence[ToolCall]) -> None:
    for call in calls:
        actions = execution.started.pop(call.id, None)
        if call.id in execution.outcomes or actions is None or all(action.repeatable for action in actions):
            continue
        decision = await _ask_human(run, call)
        if decision is not None:
            execution.outcomes[call.id] = decision


async def _ask_human(run: Run, call: ToolCall) -> Outcome | None:
    """The human's word about a call whose outcome is unknown; None means: run it again."""
    if run.session.ask_door is None:
        return Outcome(_UNKNOWN, is_error=True)
    shown = f"{call.function.name}({call.function.arguments})"
    text = (
        f"The call {shown} had started when the run was interrupted, and what came of it is unknown. "
        "Answer 'run' to run it again, 'skip' to leave it, or say what came of it."
    )
    question = Question(id=f"{call.id}-outcome", text=text, call_id=call.id)
    await run.emit(ev.QuestionAsked(id=question.id, question=question))
    answer = (await run.session.ask(question)).strip()
    await run.emit(ev.QuestionAnswered(id=question.id, answer=answer))
    match answer.lower():
        case "run":
            return None
        case "skip" | "":
            return Outcome(_SKIPPED, is_error=True)
    return Outcome(f"The user says what came of the interrupted call: {answer}")
