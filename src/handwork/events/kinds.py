"""The events: one closed union, frozen (CONTRACT section I)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from handwork.schema import (
    JSON,
    Action,
    ApprovalChoice,
    Artifact,
    ErrorInfo,
    Image,
    Limits,
    Message,
    Question,
    Status,
    ToolCall,
    Usage,
)

VERSION = 1


class Event(BaseModel):
    """The envelope that all events share; the session stamps it once, when the event is emitted."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    journaled: ClassVar[bool] = True

    session_id: str = ""
    run_id: str = ""
    parent_call: str | None = None
    agent: str = ""
    ts: str = ""
    v: int = VERSION
    seq: int | None = None


class RunStarted(Event):
    type: Literal["run_started"] = "run_started"
    request: str | None
    images: tuple[Image, ...] = ()
    model: str
    workspace: str
    limits: Limits


class RunResumed(Event):
    """The run goes on with what an earlier process left; `settled` are the calls that got a result now."""

    type: Literal["run_resumed"] = "run_resumed"
    settled: tuple[str, ...] = ()


class RunFinished(Event):
    type: Literal["run_finished"] = "run_finished"
    status: Status
    output: str
    steps: int
    usage: Usage
    cost_usd: float | None
    artifacts: tuple[Artifact, ...] = ()
    error: ErrorInfo | None = None


class RequestSent(Event):
    """`key` and `tools` are hashes of the canonical request without the tail, and of its tools."""

    type: Literal["request_sent"] = "request_sent"
    model: str
    key: str
    tail: str
    tools: str


class StepStarted(Event):
    type: Literal["step_started"] = "step_started"
    step: int


class StepFinished(Event):
    type: Literal["step_finished"] = "step_finished"
    step: int
    result: str


class MessageAdded(Event):
    type: Literal["message_added"] = "message_added"
    message: Message


class MemoryCleared(Event):
    """User code replaced or rewrote the history; the messages that count follow as message_added."""

    type: Literal["memory_cleared"] = "memory_cleared"


class TextDelta(Event):
    type: Literal["text_delta"] = "text_delta"
    journaled: ClassVar[bool] = False
    text: str


class ThinkingDelta(Event):
    type: Literal["thinking_delta"] = "thinking_delta"
    journaled: ClassVar[bool] = False
    text: str


class ToolArgsDelta(Event):
    type: Literal["tool_args_delta"] = "tool_args_delta"
    journaled: ClassVar[bool] = False
    index: int
    call_id: str
    name: str
    text: str


class ReplyDiscarded(Event):
    type: Literal["reply_discarded"] = "reply_discarded"
    journaled: ClassVar[bool] = False


class ToolCallStarted(Event):
    type: Literal["tool_call_started"] = "tool_call_started"
    call: ToolCall
    actions: tuple[Action, ...]


class ToolOutputDelta(Event):
    type: Literal["tool_output_delta"] = "tool_output_delta"
    journaled: ClassVar[bool] = False
    call_id: str
    text: str


class ToolCallFinished(Event):
    type: Literal["tool_call_finished"] = "tool_call_finished"
    call_id: str
    observation: str
    details: dict[str, JSON] | None = None
    is_error: bool = False
    artifacts: tuple[Artifact, ...] = ()
    images: tuple[Image, ...] = ()
    seconds: float = 0.0
    ending: Literal["done", "interrupted", "not_begun"] = "done"
    """`interrupted`: nobody knows how far it came; `not_begun`: it had no effect at all."""


class ApprovalRequested(Event):
    type: Literal["approval_requested"] = "approval_requested"
    id: str
    call: ToolCall
    action: tuple[Action, ...]
    why: str
    preview: str = ""
    rules: tuple[str, ...] = ()


class ApprovalResolved(Event):
    type: Literal["approval_resolved"] = "approval_resolved"
    id: str
    decision: ApprovalChoice
    by: Literal["human", "rule", "mode"]
    reason: str = ""


class QuestionAsked(Event):
    type: Literal["question_asked"] = "question_asked"
    id: str
    question: Question


class QuestionAnswered(Event):
    type: Literal["question_answered"] = "question_answered"
    id: str
    answer: str


class UsageReported(Event):
    type: Literal["usage_reported"] = "usage_reported"
    input: int
    cached: int
    written: int
    output: int
    reasoning: int
    cost_usd: float | None


class ContextFitted(Event):
    type: Literal["context_fitted"] = "context_fitted"
    before: int
    after: int
    how: str


class RetryScheduled(Event):
    type: Literal["retry_scheduled"] = "retry_scheduled"
    error: ErrorInfo
    wait: float
    attempt: int


class SnapshotTaken(Event):
    type: Literal["snapshot_taken"] = "snapshot_taken"
    id: str
    files: tuple[str, ...]


class StateChanged(Event):
    type: Literal["state_changed"] = "state_changed"
    state: str


class AgentStarted(Event):
    type: Literal["agent_started"] = "agent_started"
    name: str
    task: str


class AgentFinished(Event):
    type: Literal["agent_finished"] = "agent_finished"
    name: str
    status: Status


class PlanChanged(Event):
    type: Literal["plan_changed"] = "plan_changed"
    plan: dict[str, JSON]


class Notice(Event):
    type: Literal["notice"] = "notice"
    level: Literal["info", "warning", "error"]
    text: str


class UnknownEvent(Event):
    """An event of a kind or shape that this version does not know: kept, and written back unchanged (`raw`)."""

    type: str
    raw: bytes = Field(exclude=True)


AnyEvent: TypeAlias = Annotated[
    RunStarted
    | RunResumed
    | RunFinished
    | RequestSent
    | StepStarted
    | StepFinished
    | MessageAdded
    | MemoryCleared
    | TextDelta
    | ThinkingDelta
    | ToolArgsDelta
    | ReplyDiscarded
    | ToolCallStarted
    | ToolOutputDelta
    | ToolCallFinished
    | ApprovalRequested
    | ApprovalResolved
    | QuestionAsked
    | QuestionAnswered
    | UsageReported
    | ContextFitted
    | RetryScheduled
    | SnapshotTaken
    | StateChanged
    | AgentStarted
    | AgentFinished
    | PlanChanged
    | Notice,
    Field(discriminator="type"),
]
