"""Results: what a tool returns, what a run came to, and what both cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from pydantic.dataclasses import dataclass as validated

from handwork.errors import RunFailed
from handwork.schema.values import JSON, STRICT


class AgentState(StrEnum):
    """Where an agent stands (CONTRACT A2)."""

    IDLE = "IDLE"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    ERROR = "ERROR"


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


@validated(frozen=True, slots=True, config=STRICT)
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


@validated(frozen=True, slots=True, config=STRICT)
class Artifact:
    """A file that a call left for people: its path on the host and what it is."""

    path: str
    title: str = ""
    media_type: str = "application/octet-stream"


@dataclass(slots=True)
class ToolResult:
    """What a tool returns (CONTRACT D10). `details` is for the UI and for `Tool.restore`; `system` is a note about the tool itself;
    `images` are further pictures in base64."""

    output: Any = None
    error: str | None = None
    base64_image: str | None = None
    system: str | None = None
    details: dict[str, JSON] | None = None
    artifacts: tuple[Artifact, ...] = ()
    images: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any((self.output, self.error, self.base64_image, self.system, self.details, self.artifacts, self.images))

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
            images=self.images + other.images,
        )

    def replace(self, **fields: Any) -> ToolResult:
        """A copy with some fields changed."""
        return replace(self, **fields)


def _joined(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return str(first) + str(second)


@validated(frozen=True, slots=True, config=STRICT)
class ErrorInfo:
    """An error as events carry it."""

    type: str
    message: str


@validated(frozen=True, slots=True, config=STRICT)
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
        lines = list(self.steps or ["No steps executed"])
        if self.status is Status.ERROR and self.detail:
            lines.append(f"Error: {self.detail}")
        return "\n".join(lines)

    def raise_for_status(self) -> Self:
        """Raise the run's error, or RunFailed unless it finished; returns itself."""
        if self.error is not None:
            raise self.error
        if self.status is not Status.FINISHED:
            raise RunFailed(f"The run ended as {self.status}: {self.output or self}")
        return self
