"""Any function is a tool: its docstring is the description, its signature the schema."""

from __future__ import annotations

import copy
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Self, TypeVar, overload

from handwork.errors import ToolError
from handwork.schema import JSON, Action
from handwork.tool.base import Tool
from handwork.tool.docstring import parse_docstring
from handwork.tool.signature import Arguments, callee
from handwork.tool.threads import run_in_thread

Actions = Sequence[Action] | Callable[[Mapping[str, JSON]], Sequence[Action]]
F = TypeVar("F", bound=Callable[..., Any])
NAME = r"[A-Za-z0-9_-]{1,64}"
"""What providers accept as a tool's name."""
_DECLARED = "__handwork_tool__"
_MADE = "__handwork_made__"


@dataclass(frozen=True, slots=True)
class _Declaration:
    name: str | None = None
    description: str | None = None
    actions: Actions | None = None


class FunctionTool(Tool):
    """A function as a tool.

    Async functions run in the event loop, sync ones in a thread. A `context` parameter gets the ToolContext and is no part
    of the schema; `**kwargs` lets the model send further names.

    Args:
        function: a function, method, partial or object with `__call__`; what `@tool` noted on it holds unless given here.
        name: 1 to 64 letters, digits, `_` or `-`; the function's own name by default.
        description: what the model reads; the docstring without its parameters by default.
        actions: what a call does, as a list or as a function of the arguments (defaults filled in); undeclared is the
            worst: execute on `*`.
        fields: further fields of a Tool (`parameters`, `sandboxed`, a subclass's own).

    Raises TypeError for a name that is no field, and for what no JSON object can call: `*args`, a generator, a type without JSON Schema.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        actions: Actions | None = None,
        **fields: Any,
    ) -> None:
        noted: _Declaration = getattr(function, _DECLARED, None) or _Declaration()
        name = name or noted.name or _name_of(function)
        _check(function, name)
        text, descriptions = parse_docstring(_docstring_of(function))
        try:
            self._arguments = Arguments(function, descriptions)
        except TypeError as error:
            raise TypeError(f"{name} cannot be a tool: {error}") from error
        self.function = function
        self._actions = noted.actions if actions is None else actions
        self._is_async = _is_async(function)
        self._running: set[object] = set()
        fields.setdefault("parameters", self._arguments.schema)
        super().__init__(name=name, description=description or noted.description or text, **fields)

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        declared = self._actions
        if declared is None:
            return super().actions(arguments)
        return declared(self._arguments.defaults | dict(arguments)) if callable(declared) else declared

    async def execute(self, /, **kwargs: Any) -> Any:
        """Convert the arguments to the annotated types and call the function.

        Raises ArgumentsError for arguments that do not fit, and whatever the function raises.
        """
        context = {"context": kwargs.pop("context")} if self.wants_context and "context" in kwargs else {}
        positional, named = self._arguments.convert(kwargs)
        call = functools.partial(self.function, *positional, **named, **context)
        if not self._is_async:
            result = await self._in_thread(call)
            return await result if inspect.isawaitable(result) else result
        try:
            return await call()
        except (SystemExit, KeyboardInterrupt) as error:
            raise ToolError(f"the tool raised {type(error).__name__}({error})") from error

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        mark = object()

        def work() -> Any:
            self._running.add(mark)
            try:
                return call()
            finally:
                self._running.discard(mark)

        return await run_in_thread(work)

    @property
    def running(self) -> int:
        """How many threads are inside the function now; after a cancelled call, those that were left behind."""
        return len(self._running)

    @property
    def wants_context(self) -> bool:
        return self._arguments.takes_context

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Another tool over the same function: a function, and the object of a method, belong to whoever passed them in."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__, _running=set())
        return made


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, actions: Actions | None = None
) -> Callable[[F], F]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    actions: Actions | None = None,
) -> Any:
    """Note on a function how it is to be used as a tool; it stays the function that it was.

    `@tool` alone checks that the function can be one; `@tool(name=…, description=…, actions=…)` says more, see FunctionTool.
    """

    def note(it: F) -> F:
        _check(it, name or _name_of(it))
        setattr(it, _DECLARED, _Declaration(name, description, actions))
        vars(it).pop(_MADE, None)
        return it

    return note if function is None else note(function)


def as_tool(thing: Any) -> Tool:
    """A Tool as it is, a Tool class made into one, a function or other callable as a FunctionTool; else TypeError."""
    if isinstance(thing, Tool):
        return thing
    if isinstance(thing, type):
        if issubclass(thing, Tool):
            return thing()
        raise TypeError(f"the class {thing.__qualname__} is no Tool: give a subclass of Tool, or a function")
    if callable(thing):
        return _of_function(thing)
    raise TypeError(f"{thing!r} ({type(thing).__name__}) is no tool: give a Tool, a Tool class or a function")


def _of_function(function: Any) -> FunctionTool:
    """A FunctionTool of its own; its schema is made once a function and kept on it, since agents are made by the hundred."""
    known = getattr(function, _MADE, None)
    if not isinstance(known, FunctionTool) or known.function is not function:  # functools.wraps copies attributes
        known = FunctionTool(function)
        if isinstance(function, FunctionType):
            setattr(function, _MADE, known)
    return copy.copy(known)


def _check(function: Any, name: str) -> None:
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"{function!r} is no function")
    if not re.fullmatch(NAME, name):
        raise ValueError(f"{name!r} cannot be a tool's name: 1 to 64 letters, digits, _ or - (give name=…)")
    inner = callee(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise TypeError(
            f"{name} cannot be a tool: a generator has no one result; return a list, or use context.progress"
        )
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise TypeError(
                f"{name} cannot be a tool: arguments come by name, so *{parameter.name} must be a list instead"
            )


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(callee(function))


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _docstring_of(function: Any) -> str | None:
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function):
        return inspect.getdoc(function)
    return type(function).__call__.__doc__ or inspect.getdoc(type(function))
