"""What a session's journal says happened: one fold, for resuming and while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from handwork import events as ev
from handwork.schema import JSON, Action, Artifact, Image, Message, Question, Role, Status, ToolCall, Usage

Blob = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call, as it goes into the history."""

    observation: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    details: dict[str, JSON] | None = None
    artifacts: tuple[Artifact, ...] = ()


@dataclass(slots=True)
class CallRecord:
    """A call whose result is not yet in the history: it has started and, if `outcome` is there, ended."""

    call: ToolCall
    actions: tuple[Action, ...]
    outcome: Outcome | None = None
    closed: bool = False
    """Whether its end was told, with or without a result."""


@dataclass(slots=True)
class Past:
    """A session's conversation and what is open in it. Sub-agents' messages are no part of it; their spending is.

    `seq` is that of the last event taken; `generation` grows when the conversation was rewritten.
    """

    session_id: str = ""
    seq: int = 0
    generation: int = 0
    messages: list[Message] = field(default_factory=list)
    calls: dict[str, CallRecord] = field(default_factory=dict)
    questions: dict[str, Question] = field(default_factory=dict)
    """Questions that still wait for an answer, by id."""
    unapproved: set[str] = field(default_factory=set)
    """Ids of the calls that were put to the human, who has decided nothing yet."""
    answers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The rules that the human allowed for this session and has not taken back, by the id of the question."""
    stopped: bool = False
    """Whether somebody stopped the run that made the newest calls."""
    request: str | None = None
    """A request that began a run and never came into the conversation."""
    request_images: tuple[Image, ...] = ()
    """The pictures of that request."""
    plan: dict[str, JSON] | None = None
    """The plan as it was last told, None if there is none."""
    spent: Usage = field(default_factory=Usage)
    cost: float | None = None
    """USD of the requests whose price is known; None if there was none."""
    _put: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The rules that an approval for the session would allow, by the id of the question that is open."""
    _asked: set[str] = field(default_factory=set)
    """Ids of the calls in the conversation that have no result there."""
    _retelling: bool = False
    """Between memory_cleared and the next event of another kind the messages are told anew: their calls are old ones."""

    @property
    def granted(self) -> list[str]:
        """The rules that the human allowed for this session."""
        return list(dict.fromkeys(rule for rules in self.answers.values() for rule in rules))

    def record_of(self, call: ToolCall) -> CallRecord | None:
        """What is known of this very call; another call that was given the same id is none of it."""
        record = self.calls.get(call.id)
        return record if record is not None and record.call == call else None

    def read(self, event: ev.Event, blob: Blob) -> None:
        """Take an event that comes from the store, with its pictures."""
        match event:
            case ev.MessageAdded() if event.message.images:
                loaded = replace(event.message, images=_loaded(event.message.images, blob))
                event = event.model_copy(update={"message": loaded})
            case ev.ToolCallFinished() | ev.RunStarted() if event.images:
                event = event.model_copy(update={"images": _loaded(event.images, blob)})
        self.take(event)

    def take(self, event: ev.Event) -> None:
        """Take the next event of this session."""
        if event.seq is not None:
            self.seq = event.seq
        if type(event) is ev.UsageReported:
            self._take_usage(event)
        elif event.parent_call is None:
            kind = type(event)
            if self._retelling and kind is not ev.MessageAdded:
                self._end_of_retelling()
            handler = _HANDLERS.get(kind)
            if handler is not None:
                handler(self, event)

    def _take_usage(self, event: ev.UsageReported) -> None:
        self.spent += Usage(event.input, event.cached, event.written, event.output, event.reasoning)
        if event.cost_usd is not None:
            self.cost = (self.cost or 0.0) + event.cost_usd

    def _take_message(self, event: ev.MessageAdded) -> None:
        message = event.message
        self.messages.append(message)
        for call in message.tool_calls:
            self._asked.add(call.id)
            if not self._retelling:
                self.calls.pop(call.id, None)  # another call had this id
                self.unapproved.discard(call.id)
                self.stopped = False
        if message.role is Role.TOOL and message.tool_call_id:
            self.calls.pop(message.tool_call_id, None)
            self.unapproved.discard(message.tool_call_id)
            self._asked.discard(message.tool_call_id)
            for question in [q for q in self.questions.values() if q.call_id == message.tool_call_id]:
                del self.questions[question.id]
        elif message.role is Role.USER and message.content == self.request:
            self._end_request()

    def _clear(self, _event: ev.MemoryCleared) -> None:
        self.messages, self._asked, self._retelling = [], set(), True
        self.generation += 1

    def _end_of_retelling(self) -> None:
        """What is known of calls and questions that are no longer in the conversation is forgotten."""
        self._retelling = False
        for id in self.calls.keys() - self._asked:
            del self.calls[id]
        self.questions = {q.id: q for q in self.questions.values() if q.call_id in self._asked}

    def _take_start(self, event: ev.RunStarted) -> None:
        if event.request:
            self.request, self.request_images = event.request, event.images

    def _end_request(self) -> None:
        self.request, self.request_images = None, ()

    def _take_end(self, event: ev.RunFinished) -> None:
        self.stopped = event.status == Status.CANCELLED

    def _take_call(self, event: ev.ToolCallStarted) -> None:
        self.calls[event.call.id] = CallRecord(event.call, event.actions)

    def _take_result(self, event: ev.ToolCallFinished) -> None:
        record = self.calls.get(event.call_id)
        if record is None:
            return
        record.closed = True
        if event.ending == "not_begun" or event.call_id not in self._asked:
            del self.calls[event.call_id]
        elif event.ending == "done":
            record.outcome = Outcome(event.observation, event.is_error, event.images, event.details, event.artifacts)

    def _take_plan(self, event: ev.PlanChanged) -> None:
        self.plan = event.plan or None

    def _take_approval(self, event: ev.ApprovalRequested) -> None:
        self.unapproved.add(event.call.id)
        self._put[event.id] = event.rules

    def _take_decision(self, event: ev.ApprovalResolved) -> None:
        self.unapproved.discard(event.id)
        open = event.id in self._put
        rules = self._put.pop(event.id, ())
        if event.by != "human":
            return
        if event.decision == "allow_session":
            self.answers[event.id] = (*self.answers.get(event.id, ()), *rules)
        elif event.decision == "deny" and not open:
            self.answers.pop(event.id, None)  # an answer that was given before is taken back

    def _take_question(self, event: ev.QuestionAsked) -> None:
        self.questions[event.id] = event.question

    def _take_answer(self, event: ev.QuestionAnswered) -> None:
        self.questions.pop(event.id, None)
        if event.answer == self.request:
            self._end_request()


_HANDLERS: dict[type[ev.Event], Callable[[Past, Any], None]] = {
    ev.MessageAdded: Past._take_message,
    ev.MemoryCleared: Past._clear,
    ev.RunStarted: Past._take_start,
    ev.RunFinished: Past._take_end,
    ev.ToolCallStarted: Past._take_call,
    ev.ToolCallFinished: Past._take_result,
    ev.PlanChanged: Past._take_plan,
    ev.ApprovalRequested: Past._take_approval,
    ev.ApprovalResolved: Past._take_decision,
    ev.QuestionAsked: Past._take_question,
    ev.QuestionAnswered: Past._take_answer,
}


def _loaded(images: tuple[Image, ...], blob: Blob) -> tuple[Image, ...]:
    return tuple(replace(image, data=(blob(image.hash) or b"").decode()) for image in images)
