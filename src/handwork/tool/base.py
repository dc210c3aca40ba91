"""The contract of a tool, and all that its execute can reach."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, Self, TypeVar

from handwork.errors import ToolError
from handwork.sandbox.base import Sandbox
from handwork.schema import JSON, Action, Artifact, Message, ToolResult
from handwork.schema.fields import construct
from handwork.tool.call_clock import CallClock

R = TypeVar("R")
_UNCOPIABLE = (TypeError, ValueError, AttributeError, NotImplementedError, RuntimeError, copy.Error)


class SaveArtifact(Protocol):
    """Write bytes to a file of the session's artifacts; the name is made unique, the path returned is the host's."""

    async def __call__(self, name: str, data: bytes, *, title: str = "", media_type: str = ...) -> Artifact: ...


class Resources(Protocol):
    """What outlives a call and belongs to the session: `context.resource("shell", make)` returns the one of that key.

    It is made at the first use; one with an `async close()` is closed when the session closes.
    """

    def __call__(self, key: str, make: Callable[[], R], /) -> R: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """All that a tool can reach. An execute with a `context` parameter gets it.

    `ask` puts a question to the human (raises Waiting when headless); `progress` shows output while the call runs;
    `history` is the conversation so far; `spawn` runs a sub-agent; `deadline` is the loop's clock time at which the run's
    time ends (None: no limit); `clock` stands still while a person is asked about what the call is doing; `forbids`
    says of a real path whether rules forbid reading it.
    """

    call_id: str
    sandbox: Sandbox
    ask: Callable[[str], Awaitable[str]]
    progress: Callable[[str], Awaitable[None]]
    save_artifact: SaveArtifact
    resource: Resources
    history: Sequence[Message] = ()
    spawn: Callable[..., Awaitable[Any]] | None = None
    deadline: float | None = None
    clock: CallClock = field(default_factory=CallClock)
    forbids: Callable[[str], bool] = lambda path: False


class Tool(ABC):
    """One thing that an agent can do.

    Subclasses set `name`, `description` and `parameters` (a JSON Schema of type object) and write `execute`. Class
    attributes are the defaults; the constructor takes the same names and no others (TypeError), and every tool has a list,
    dict or set of its own (`handwork.schema.fields`).

    `sandboxed` says that all effects stay in `context.sandbox`; a tool without it acts in this process, so whoever passed
    it in vouches for it.
    """

    name: str = ""
    description: str = ""
    parameters: Mapping[str, JSON] = {"type": "object", "properties": {}}
    sandboxed: bool = False

    def __init__(self, **fields: Any) -> None:
        construct(self, fields)

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        """What a call with these (validated) arguments does to which resource; undeclared is the worst."""
        return [Action(kind="execute", resource="*")]

    async def preview(self, arguments: Mapping[str, JSON], sandbox: Sandbox) -> str:
        """What a call with these (validated) arguments would change, as a unified diff, for whoever is asked to approve it;
        '' if that is not known before. Nothing may be changed by it."""
        return ""

    @abstractmethod
    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        """Run the call. Returns a ToolResult, a string or anything JSON; raises ToolError for what the model should read."""

    async def invoke(self, arguments: Mapping[str, JSON], context: ToolContext | None) -> Any:
        """Run a call with these (validated) arguments: execute gets them by their names, and the context if it wants it."""
        if not self.wants_context:
            return await self.execute(**arguments)
        if context is None:
            raise ToolError(f"{self.name} needs a ToolContext, as an agent's run gives it")
        return await self.execute(**arguments, context=context)

    async def __call__(self, **kwargs: Any) -> Any:
        return await self.execute(**kwargs)

    def restore(self, details: Mapping[str, JSON]) -> None:
        """Called before a run, in order, with the details of the session's results that this very tool has not made: those before
        a session was resumed, and another agent's. Rebuilds the tool's state."""

    async def cleanup(self) -> None:
        """Free what the tool holds; called when the session closes."""

    def fresh(self, memo: dict[int, Any] | None = None) -> Self:
        """Another tool like this one that shares nothing with it, for another agent; `memo` is copy.deepcopy's.

        Raises TypeError for a tool that cannot be copied.
        """
        try:
            return copy.deepcopy(self, memo)
        except _UNCOPIABLE as error:
            raise TypeError(
                f"The tool {self.name!r} cannot be copied ({error}), and two agents must not share one: "
                "give it to one agent's constructor (available_tools=[…]) instead of the class"
            ) from error

    @property
    def wants_context(self) -> bool:
        """Whether execute has a `context` parameter."""
        return _takes_context(type(self).execute)

    def to_param(self) -> dict[str, JSON]:
        """The tool as an OpenAI function."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}

    def success_response(self, data: Any) -> ToolResult:
        """A result with this output."""
        return ToolResult(output=data)

    def fail_response(self, text: str) -> ToolResult:
        """A result with this error."""
        return ToolResult(error=text)


@lru_cache(maxsize=512)
def _takes_context(execute: Callable[..., Any]) -> bool:
    return "context" in inspect.signature(execute).parameters  # a memo: reading a signature is slow


BaseTool = Tool
"""OpenManus's name for Tool."""
