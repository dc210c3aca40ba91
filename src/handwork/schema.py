"""The words of the domain: messages, calls, results, actions, and what goes to and comes from a model."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass as validated

from handwork.errors import HandworkError, RunFailed

JSON: TypeAlias = Any
"""A JSON value; typed Any because mypy cannot follow recursive JSON usefully."""


class AgentState(StrEnum):
    """Where an agent stands (CONTRACT A2)."""

    IDLE = "IDLE"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    ERROR = "ERROR"


class Role(StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolChoice(StrEnum):
    """Whether the model must, may or must not call tools (CONTRACT B3)."""

    NONE = "none"
    AUTO = "auto"
    REQUIRED = "required"


class Status(StrEnum):
    """How a run ended (CONTRACT A4)."""

    FINISHED = "finished"
    FAILED = "failed"
    MAX_STEPS = "max_steps"
    STUCK = "stuck"
    TOKEN_LIMIT = "token_limit"
    BUDGET = "budget"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    WAITING = "waiting"
    ERROR = "error"


_STRICT = ConfigDict(extra="forbid")
# Validated, slotted dataclasses: a ninth of the memory and half the time of pydantic models, and a history is made of them.


def scrub(text: str) -> str:
    """Replace lone surrogates, which no JSON encoder and no store accepts; honest text is returned as it is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


@validated(frozen=True, slots=True, config=_STRICT)
class Function:
    """The function part of a call: `arguments` is the raw JSON text as the model sent it."""

    name: str
    arguments: str = "{}"


@validated(frozen=True, slots=True, config=_STRICT)
class ToolCall:
    """One call that the model asks for. `id` is unique in a history."""

    id: str
    function: Function
    type: Literal["function"] = "function"


@validated(frozen=True, slots=True, config=_STRICT)
class Image:
    """A picture, known by the hash of its bytes.

    `data` (base64) is present while the picture is in memory; the journal stores it once, beside the events.
    """

    hash: str
    media_type: str
    data: Annotated[str, Field(exclude=True)] = field(default="", repr=False)

    @classmethod
    def from_base64(cls, data: str, media_type: str | None = None) -> Self:
        """Make one from base64 text; the media type is read off the bytes unless given."""
        raw = base64.b64decode(data)
        return cls(hash=hashlib.sha256(raw).hexdigest(), media_type=media_type or _media_type(raw), data=data)


def _media_type(raw: bytes) -> str:
    if raw.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if raw.startswith(b"GIF8"):
        return "image/gif"
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return "image/webp"
    return "image/png"


@validated(frozen=True, slots=True, config=_STRICT)
class Thinking:
    """A piece of a model's reasoning; `opaque` is whatever the provider wants back byte for byte (signatures, encrypted text)."""

    text: str = ""
    opaque: dict[str, JSON] | None = None


@validated(frozen=True, slots=True, config=_STRICT)
class Message:
    """One message of a history; frozen, so its encoded bytes are made once per wire and kept in `encoded`.

    `is_error` of a tool message says that the call failed. `finish_reason` of an assistant message is the wire's reason in
    OpenAI's words (stop, length, tool_calls, content_filter). `opaque` holds provider parts that must round-trip.
    """

    role: Role
    content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    images: tuple[Image, ...] = ()
    thinking: tuple[Thinking, ...] = ()
    is_error: bool = False
    finish_reason: str | None = None
    opaque: dict[str, JSON] | None = None
    encoded: Annotated[Any, Field(exclude=True)] = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.content is not None and (clean := scrub(self.content)) is not self.content:
            object.__setattr__(self, "content", clean)

    @classmethod
    def user_message(cls, content: str, base64_image: str | None = None) -> Message:
        return cls(role=Role.USER, content=content, images=_images(base64_image))

    @classmethod
    def system_message(cls, content: str) -> Message:
        return cls(role=Role.SYSTEM, content=content)

    @classmethod
    def assistant_message(cls, content: str | None = None, base64_image: str | None = None) -> Message:
        return cls(role=Role.ASSISTANT, content=content, images=_images(base64_image))

    @classmethod
    def tool_message(
        cls, content: str, name: str, tool_call_id: str, base64_image: str | None = None, *, is_error: bool = False
    ) -> Message:
        return cls(
            role=Role.TOOL,
            content=content,
            name=name,
            tool_call_id=tool_call_id,
            images=_images(base64_image),
            is_error=is_error,
        )

    @classmethod
    def from_tool_calls(
        cls, tool_calls: Iterable[ToolCall], content: str | None = None, base64_image: str | None = None
    ) -> Message:
        return cls(role=Role.ASSISTANT, content=content, tool_calls=tuple(tool_calls), images=_images(base64_image))

    def to_dict(self) -> dict[str, JSON]:
        """The message as a plain dict without empty fields."""
        dumped: dict[str, JSON] = _messages.dump_python(self, mode="json", exclude_defaults=True)
        return {"role": self.role.value, **dumped}

    def __add__(self, other: Message | list[Message]) -> list[Message]:
        return [self, *(other if isinstance(other, list) else [other])]

    def __radd__(self, other: list[Message]) -> list[Message]:
        return [*other, self]


_messages = TypeAdapter(Message)


def _images(base64_image: str | None) -> tuple[Image, ...]:
    return (Image.from_base64(base64_image),) if base64_image else ()


class History(list[Message]):
    """The list behind Memory: appending is cheap and expected, anything else raises the flag `rewritten`."""

    rewritten = False


def _rewriting(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def wrapper(self: History, *args: Any, **kwargs: Any) -> Any:
        self.rewritten = True
        return method(self, *args, **kwargs)

    return wrapper


for _name in ("__setitem__", "__delitem__", "__imul__", "insert", "pop", "remove", "clear", "sort", "reverse"):
    setattr(History, _name, _rewriting(_name))


class Memory:
    """An agent's history. It never drops a message; `journaled` counts those that the journal holds already."""

    __slots__ = ("_messages", "journaled")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages = History(messages)
        self.journaled = 0

    @property
    def messages(self) -> list[Message]:
        return self._messages

    @messages.setter
    def messages(self, messages: Iterable[Message]) -> None:
        if messages is not self._messages:
            self._messages = History(messages)
            self._messages.rewritten = True

    @property
    def rewritten(self) -> bool:
        """Whether something else than appending happened since the last `mark`."""
        return self._messages.rewritten

    def mark(self) -> None:
        """Note that the journal now holds everything."""
        self._messages.rewritten, self.journaled = False, len(self._messages)

    def add_message(self, message: Message) -> None:
        self._messages.append(message)

    def add_messages(self, messages: Iterable[Message]) -> None:
        self._messages.extend(messages)

    def clear(self) -> None:
        self._messages.clear()

    def get_recent_messages(self, n: int) -> list[Message]:
        return self._messages[-n:] if n > 0 else []

    def to_dict_list(self) -> list[dict[str, JSON]]:
        return [message.to_dict() for message in self._messages]


@validated(frozen=True, slots=True, config=_STRICT)
class Usage:
    """Tokens of one or several requests; `input` includes `cached` and `written`, `output` includes `reasoning`."""

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            written=self.written + other.written,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )

    @property
    def total(self) -> int:
        return self.input + self.output


@validated(frozen=True, slots=True, config=_STRICT)
class Artifact:
    """A file that a call left for people: its path on the host and what it is."""

    path: str
    title: str = ""
    media_type: str = "application/octet-stream"


@dataclass(slots=True)
class ToolResult:
    """What a tool returns (CONTRACT D10). `details` is for the UI and for `Tool.restore`; `system` is a note about the tool itself."""

    output: Any = None
    error: str | None = None
    base64_image: str | None = None
    system: str | None = None
    details: dict[str, JSON] | None = None
    artifacts: tuple[Artifact, ...] = ()

    def __bool__(self) -> bool:
        return any((self.output, self.error, self.base64_image, self.system, self.details, self.artifacts))

    def __str__(self) -> str:
        output = "" if self.output is None else str(self.output)
        if not self.error:
            return output
        return f"Error: {self.error}\n{output}" if output else f"Error: {self.error}"

    def __add__(self, other: ToolResult) -> ToolResult:
        if self.base64_image and other.base64_image:
            raise ValueError("Cannot combine tool results: both hold an image")
        return ToolResult(
            output=_joined(self.output, other.output),
            error=_joined(self.error, other.error),
            base64_image=self.base64_image or other.base64_image,
            system=_joined(self.system, other.system),
            details={**(self.details or {}), **(other.details or {})} or None,
            artifacts=self.artifacts + other.artifacts,
        )

    def replace(self, **fields: Any) -> ToolResult:
        """A copy with some fields changed."""
        return replace(self, **fields)


def _joined(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return str(first) + str(second)


ActionKind: TypeAlias = Literal["read", "write", "execute", "network", "ask", "end"]


@validated(frozen=True, slots=True, config=_STRICT)
class Action:
    """What a call does to one resource: concurrency, policy and resume all read this.

    `resource` is a path, an address or a name; `*` is shared with every resource, a folder with all below it.
    `repeatable` says that doing it twice is the same as doing it once.
    """

    kind: ActionKind
    resource: str = "*"
    repeatable: bool = False


class Mode(StrEnum):
    """Who approves calls (CONTRACT H)."""

    ASK = "ask"
    AUTO = "auto"
    READ_ONLY = "read-only"


class Verdict(StrEnum):
    """What the policy says about a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@validated(frozen=True, slots=True, config=_STRICT)
class Decision:
    """The policy's verdict and the reason, in words for a person."""

    verdict: Verdict
    why: str = ""


@validated(frozen=True, slots=True, config=_STRICT)
class Question:
    """A question of the agent to its human."""

    id: str
    text: str
    call_id: str | None = None


ApprovalChoice: TypeAlias = Literal["allow", "allow_session", "allow_always", "deny"]


@validated(frozen=True, slots=True, config=_STRICT)
class ApprovalRequest:
    """May this call run? `call.function.arguments` is exactly what will run."""

    id: str
    call: ToolCall
    actions: tuple[Action, ...]
    why: str


@validated(frozen=True, slots=True, config=_STRICT)
class Approval:
    """A human's answer to an ApprovalRequest; `reason` reaches the model when denied."""

    decision: ApprovalChoice
    reason: str = ""


Ask: TypeAlias = Callable[[Question], Awaitable[str]]
"""The door for questions. Raise Waiting when nobody is there."""
Approve: TypeAlias = Callable[[ApprovalRequest], Awaitable[Approval]]
"""The door for approvals."""
Notify: TypeAlias = Callable[[str, str], None]
"""notify(level, text): how sandbox, llm and mcp report; level is info, warning or error."""


@validated(frozen=True, slots=True, config=_STRICT)
class ErrorInfo:
    """An error as events carry it."""

    type: str
    message: str


@validated(frozen=True, slots=True, config=_STRICT)
class Limits:
    """What bounds a run: steps, seconds, USD and tokens (None: no limit)."""

    max_steps: int | None = None
    timeout: float | None = None
    usd: float | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """USD and tokens that a session tree may spend; None is no limit."""

    usd: float | None = None
    tokens: int | None = None


@dataclass(slots=True)
class RunResult:
    """How a run ended. `str(result)` is the step summary, `output` the answer."""

    status: Status
    output: str = ""
    steps: list[str] = field(default_factory=list)
    usage: Usage = Usage()
    cost: float | None = None
    session_id: str = ""
    artifacts: tuple[Artifact, ...] = ()
    error: BaseException | None = None
    detail: str = ""
    """Why the run ended, in words, where the status alone does not tell (an error, a budget, a question)."""
    seconds: float = 0.0
    value: Any = None
    """The typed value of create_chat_completion, if that ended the run."""

    def __str__(self) -> str:
        return "\n".join(self.steps) if self.steps else "No steps executed"

    def raise_for_status(self) -> Self:
        """Raise the run's error, or RunFailed unless it finished; returns itself."""
        if self.error is not None:
            raise self.error
        if self.status is not Status.FINISHED:
            raise RunFailed(f"The run ended as {self.status}: {self.output or self}")
        return self


# ---- what goes to a model, and what comes back


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


StreamItem: TypeAlias = TextDelta | ThinkingDelta | ToolArgsDelta | Retrying | Discarded | ModelNotice | Reply
