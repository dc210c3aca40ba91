"""A Model that plays a script: for tests of agents, examples and demos, without a network."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias
from uuid import uuid4

from handwork.errors import ScriptExhausted
from handwork.schema import Function, Reply, Request, StreamItem, TextDelta, ThinkingDelta, ToolArgsDelta, ToolCall

_Played: TypeAlias = str | Reply | ToolCall | Sequence[ToolCall] | Sequence[StreamItem] | BaseException
Line: TypeAlias = _Played | Callable[[Request], _Played | Awaitable[_Played]]
"""One answer of a script: a text; a call or a list of calls (see `call`); a Reply; a list of stream items that ends with a Reply;
an exception, which is raised; or a function of the request (async or not) that returns one of these."""


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A tool call for a script, with an id of its own."""
    return ToolCall(id=_new_id(), function=Function(name=name, arguments=json.dumps(arguments, ensure_ascii=False)))


class ScriptedModel:
    """Plays a list of answers, one a request, or one function of the request for ever.

    >>> model = ScriptedModel([call("bash", command="ls"), "Done."])

    `requests` holds every request that came, with its messages as they were then. When the list is spent it raises
    ScriptExhausted, so a test fails where an agent asks more often than expected.
    """

    def __init__(self, script: Sequence[Line] | Callable[[Request], Any], *, name: str = "scripted:model") -> None:
        self._script = script if callable(script) else list(script)
        self._name = name
        self._ids: set[str] = set()
        self.requests: list[Request] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def remaining(self) -> int:
        """How many answers of a list are left."""
        return 0 if callable(self._script) else max(0, len(self._script) - len(self.requests))

    async def stream(self, request: Request) -> AsyncIterator[StreamItem]:
        at = len(self.requests)
        self.requests.append(replace(request, messages=tuple(request.messages)))
        played = await self._line(at)
        if isinstance(played, BaseException):
            raise played
        for item in self._items(played):
            yield item

    async def _line(self, at: int) -> Any:
        if callable(self._script):
            line: Any = self._script
        elif at < len(self._script):
            line = self._script[at]
        else:
            count = len(self._script)
            raise ScriptExhausted(f"the script has {count} answers and was asked for number {at + 1}", model=self._name)
        while callable(line):
            line = line(self.requests[at])
        return await line if inspect.isawaitable(line) else line

    def _items(self, played: Any) -> list[StreamItem]:
        if isinstance(played, str):
            return deltas_of(Reply(content=played))
        if isinstance(played, ToolCall):
            played = [played]
        if isinstance(played, Reply):
            return deltas_of(played)
        if all(isinstance(item, ToolCall) for item in played) and played:
            calls = tuple(self._fresh(call) for call in played)
            return deltas_of(Reply(tool_calls=calls, finish_reason="tool_calls"))
        return list(played)

    def _fresh(self, call: ToolCall) -> ToolCall:
        """The call with an id that this model has not used before (a script may hold one call several times)."""
        if not call.id or call.id in self._ids:
            call = replace(call, id=_new_id())
        self._ids.add(call.id)
        return call


def deltas_of(reply: Reply) -> list[StreamItem]:
    """A reply as a model would stream it: a few deltas, then the reply."""
    items: list[StreamItem] = [ThinkingDelta(part.text) for part in reply.thinking if part.text]
    items += [TextDelta(piece) for piece in _pieces(reply.content or "")]
    for place, call in enumerate(reply.tool_calls):
        items.append(ToolArgsDelta(place, call.id, call.function.name, call.function.arguments))
    return [*items, reply]


def _pieces(text: str, count: int = 3) -> list[str]:
    """The text in at most `count` pieces, cut between words."""
    words = re.findall(r"\S+\s*|\s+", text)
    size = max(1, -(-len(words) // count))
    return ["".join(words[at : at + size]) for at in range(0, len(words), size)]


def _new_id() -> str:
    return f"call_{uuid4().hex[:24]}"
