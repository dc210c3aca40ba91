"""Making a history valid before a run: every call gets its result, every result has its call (CONTRACT A14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from handwork import events as ev
from handwork.agent.call_words import call_in_words
from handwork.agent.history import OpenTurn, adopt_orphans, first_open, forget_calls
from handwork.agent.questions import put
from handwork.agent.run import Run
from handwork.errors import Waiting
from handwork.schema import Memory, Question, ToolCall
from handwork.store.past import Outcome

_UNKNOWN = "Outcome unknown: the call had started when the run was interrupted; check what it did before you repeat it"
_SKIPPED = "Outcome unknown: the call was interrupted, and the user chose not to run it again"
_SHOWN, _ASKED = 200, 2_000
"""Characters of a call that a notice shows, and a question."""
_QUESTION = """\
This had been started when the work was interrupted, and nobody knows how far it came:

{call}

Type run to do it again, or skip (Enter alone does the same) to leave it as it is; anything else you type tells the agent what \
came of it."""
_STOPPED = (
    "Not executed: the run was stopped before this call began, and the user has said something since: read that first"
)
_LOST = "Outcome unknown: no result of this call was recorded"


class Settles(Protocol):
    """What settling needs of its agent."""

    memory: Memory

    async def complete(
        self, run: Run, calls: Sequence[ToolCall], given: dict[str, Outcome], at: int | None = None
    ) -> str: ...


async def settle(agent: Settles, run: Run, request: str | None) -> str | None:
    """Answer every open call; returns the request, or None if it was the answer to a waiting question.

    Of the newest turn, a call that never started runs now, unless somebody has stopped the run and says something else; one
    that started is repeated only if all its actions are repeatable, else the human decides. Calls of older turns, which
    requests have passed by, are only answered.
    """
    adopt_orphans(agent.memory)
    before: OpenTurn | None = None
    while (turn := first_open(agent.memory.messages)) is not None:
        if turn == before:  # its results went elsewhere: a tool changed the history under us
            forget_calls(agent.memory, turn.at)
            continue
        before = turn
        unfinished = tuple(call.id for call in turn.calls if _recorded(run, call) is None)
        run.emit(ev.RunResumed(settled=unfinished))
        if turn.newest:
            request = _answering(run, turn, request)
            given = await _decided(run, turn.calls, begin=not (run.session.past.stopped and request))
        else:
            given = {call.id: _recorded(run, call) or _unknown(run, call, _LOST) for call in turn.calls}
        await agent.complete(run, turn.calls, given, turn.at)
        for call in turn.calls:  # an answer that no call has taken is a word of the user like any other
            request = run.answers.pop(call.id, request)
    return request


def _unknown(run: Run, call: ToolCall, text: str, *, is_error: bool = True) -> Outcome:
    """What is said of a call whose own result is not known; a pair that a crash left open is closed with it."""
    outcome = Outcome(text, is_error=is_error)
    record = run.session.past.record_of(call)
    if record is not None and not record.closed:
        run.emit(ev.ToolCallFinished(call_id=call.id, observation=text, is_error=is_error))
    shown = " ".join(call_in_words(call, _SHOWN).split())
    run.notice("warning", f"What came of an interrupted call is not known, and it was not repeated: {shown}")
    return outcome


def _answering(run: Run, turn: OpenTurn, request: str | None) -> str | None:
    """Take the request for the answer to the question that a call of this turn waits with, if there is one."""
    open_questions = run.session.past.questions
    waiting = next((call.id for call in turn.calls if call.id in open_questions), None)
    if waiting is None or request is None:
        return request
    run.answers[waiting] = request
    return None


def _recorded(run: Run, call: ToolCall) -> Outcome | None:
    record = run.session.past.record_of(call)
    return record.outcome if record else None


async def _decided(run: Run, calls: Sequence[ToolCall], *, begin: bool) -> dict[str, Outcome]:
    """The outcomes that are known or decided upon; calls without one run. `begin`: those that never started may, too."""
    given: dict[str, Outcome] = {}
    for call in calls:
        record = run.session.past.record_of(call)
        if record is None:
            if not begin:
                given[call.id] = Outcome(_STOPPED, is_error=True)
        elif record.outcome is not None:
            given[call.id] = record.outcome
        elif not all(action.repeatable for action in record.actions):
            decision = await _ask_human(run, call)
            if decision is not None:
                given[call.id] = decision
    return given


async def _ask_human(run: Run, call: ToolCall) -> Outcome | None:
    """The human's word about a call whose outcome is unknown; None means: run it again."""
    if run.session.ask_door is None:
        return _unknown(run, call, _UNKNOWN)
    text = run.session.masked(_QUESTION.format(call=_indented(call_in_words(call, _ASKED))))
    try:
        answer = (await put(run, Question(id=f"{call.id}-outcome", text=text, call_id=call.id))).strip()
    except Waiting:  # nobody was at the door after all
        return _unknown(run, call, _UNKNOWN)
    match answer.strip("'\"").lower():
        case "run" | "run it" | "run again" | "run it again":
            return None
        case "skip" | "skip it" | "":
            return _unknown(run, call, _SKIPPED)
    return _unknown(run, call, f"The user says what came of the interrupted call: {answer}", is_error=False)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))
