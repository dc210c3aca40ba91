"""What a session's journal says happened: the fold that resume starts from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from handwork import events as ev
from handwork.schema import JSON, Artifact, Image, Message, Question, Usage


@dataclass(slots=True)
class Outcome:
    """What came of a call: what the model sees of it, and the rest."""

    observation: str
    is_error: bool = False
    images: tuple[Image, ...] = ()
    details: dict[str, JSON] | None = None
    artifacts: tuple[Artifact, ...] = ()
    fault: str = ""
    """The kind of error, for stuck detection: two errors of one kind are the same error."""
    seconds: float = 0.0


@dataclass(slots=True)
class Recorded:
    """A session's past. `started` are calls whose effect may have happened, `outcomes` those with a known result."""

    messages: list[Message] = field(default_factory=list)
    started: dict[str, ev.ToolCallStarted] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    details: list[tuple[str, dict[str, JSON]]] = field(default_factory=list)
    """(tool's name, details of one of its results), in order: what `Tool.restore` is fed with."""
    question: Question | None = None
    """The question that still waits for an answer."""
    spent: Usage = Usage()
    cost: float | None = None
    open_run: bool = False
    """Whether the last run never came to its end."""
    runs: int = 0

    @classmethod
    def fold(cls, events: Iterable[ev.Event], blob: Callable[[str], bytes | None]) -> Recorded:
        """Read a session's events in order; sub-agents' messages are not part of the conversation."""
        past = cls()
        for event in events:
            past._take(event, blob)
        return past

    def _take(self, event: ev.Event, blob: Callable[[str], bytes | None]) -> None:
        match event:
            case ev.UsageReported():
                self.spent += Usage(
                    input=event.input,
                    cached=event.cached,
                    written=event.written,
                    output=event.output,
                    reasoning=event.reasoning,
                )
                if event.cost_usd is not None:
                    self.cost = (self.cost or 0.0) + event.cost_usd
            case _ if event.parent_call is not None:
                pass
            case ev.MessageAdded():
                self.messages.append(_with_images(event.message, blob))
            case ev.MemoryCleared():
                self.messages.clear()
            case ev.RunStarted():
                self.open_run, self.runs = True, self.runs + 1
            case ev.RunFinished():
                self.open_run = False
            case _:
                self._take_call(event)

    def _take_call(self, event: ev.Event) -> None:
        match event:
            case ev.ToolCallStarted():
                self.started[event.call.id] = event
                self.outcomes.pop(event.call.id, None)
            case ev.ToolCallFinished():
                if event.details and event.call_id in self.started:
                    self.details.append((self.started[event.call_id].call.function.name, event.details))
                details = event.details or {}
                if details.get("began") is False:
                    self.started.pop(event.call_id, None)
                if not details.get("interrupted"):
                    self.outcomes[event.call_id] = Outcome(
                        event.observation, event.is_error, details=event.details, artifacts=event.artifacts
                    )
            case ev.QuestionAsked():
                self.question = event.question
            case ev.QuestionAnswered():
                self.question = None


def _with_images(message: Message, blob: Callable[[str], bytes | None]) -> Message:
    if not message.images:
        return message
    images = tuple(replace(image, data=(blob(image.hash) or b"").decode()) for image in message.images)
    return replace(message, images=images)
