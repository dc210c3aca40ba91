"""What goes to a model, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from handwork.errors import HandworkError
from handwork.schema.messages import Image, Message, Role, Thinking, ToolCall
from handwork.schema.results import Usage
from handwork.schema.values import JSON


class ToolChoice(StrEnum):
    """Whether the model must, may or must not call tools (CONTRACT B3)."""

    NONE = "none"
    AUTO = "auto"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Tail:
    """What is sent last and never stored: the next-step prompt, a nudge, a page's state (CONTRACT B2)."""

    text: str = ""
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model.

    `tools` are OpenAI function dicts sorted by name; `messages` is the live history (do not keep it: copy what you need);
    `deadline` is the loop's clock time at which the run's remaining time ends.
    """

    messages: Sequence[Message]
    system: str | None = None
    tools: tuple[Mapping[str, JSON], ...] = ()
    tail: Tail | None = None
    tool_choice: ToolChoice = ToolChoice.AUTO
    max_tokens: int | None = None
    temperature: float | None = None
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text of the answer; a delta holds all that one network read brought."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """Text of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolArgsDelta:
    """A piece of a call's arguments; `index` counts the calls of this reply from 0."""

    index: int
    id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Retrying:
    """The request failed in a way that may pass; it is sent again after `wait` seconds. `attempt` counts from 1."""

    error: HandworkError
    wait: float
    attempt: int


@dataclass(frozen=True, slots=True)
class Discarded:
    """The deltas shown since the request began are void; the reply starts anew."""


@dataclass(frozen=True, slots=True)
class Rerouted:
    """The request goes to another model (`provider:model`) when the next item is asked for."""

    model: str


@dataclass(frozen=True, slots=True)
class ModelNotice:
    """Something that a person should know about this request."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's whole answer; the last item of a stream."""

    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: tuple[Thinking, ...] = ()
    usage: Usage | None = None
    finish_reason: str = "stop"
    model: str = ""
    cost_usd: float | None = None
    opaque: dict[str, JSON] | None = None

    def to_message(self) -> Message:
        return Message(
            role=Role.ASSISTANT,
            content=self.content,
            tool_calls=self.tool_calls,
            thinking=self.thinking,
            finish_reason=self.finish_reason,
            opaque=self.opaque,
        )


StreamItem: TypeAlias = (
    TextDelta | ThinkingDelta | ToolArgsDelta | Retrying | Discarded | Rerouted | ModelNotice | Reply
)
