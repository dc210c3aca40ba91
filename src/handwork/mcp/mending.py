"""Messages of a server before the protocol's library judges them: one bad entry of a list must not cost the whole list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Self

from handwork.mcp.cleaning import DEEPEST, is_plain_name, is_too_deep, one_line
from handwork.schema import JSON

LEFT_OUT = "handwork/left-out"
"""In `_meta` of a list: sentences on what was taken out of it. Whatever the server wrote there itself is gone."""
RETURNS = "handwork/returns"
"""In `_meta` of a tool: the schema of its structured results. The library is not shown it: it would throw away the result of a call that is
done, for not fitting, and run a server's patterns on it, which may take for ever."""
TASK_ONLY = "handwork/task-only"
"""In `_meta` of a tool: it says that it can be called only as a task."""
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_MOST_PARTS = 10_000
_PARTS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}
"""The kinds of parts that we know, and the texts that each must have."""


def mended(transport: Any) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    """A transport of the library whose messages are mended as they come in."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Any, Any]]:
        async with transport as (reading, writing):
            yield _Mending(reading), writing

    return opened()


def mend(result: dict[str, JSON]) -> dict[str, JSON]:
    """A result whose lists hold nothing that the library would refuse the whole of it for."""
    for key, fault in (("tools", _fault_of_tool), ("prompts", _fault_of_prompt)):
        if isinstance(result.get(key), list):
            result = _sifted(result, key, fault)
    for key in ("resources", "resourceTemplates"):
        if isinstance(result.get(key), list):
            result = _sifted(result, key, _fault_of_resource)
    if isinstance(parts := result.get("content"), list):
        result = {**result, "content": [_part(each) for each in parts[:_MOST_PARTS]]}
    if isinstance(said := result.get("messages"), list):
        result = {**result, "messages": [_said(each) for each in said[:_MOST_PARTS] if isinstance(each, dict)]}
    return result


class _Mending:
    """A read stream of the library that gives its messages mended."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return _message(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return _message(await self._stream.__anext__())

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        closed: bool | None = await self._stream.__aexit__(kind, error, trace)
        return closed


def _message(item: Any) -> Any:
    """What came in, in place: a response's result is mended, everything else stays as it is."""
    answer: Any = getattr(item, "message", None)
    result = getattr(answer, "result", None)
    if isinstance(result, dict) and (better := mend(result)) is not result:
        answer.result = better
    return item


def _sifted(result: dict[str, JSON], key: str, fault: Any) -> dict[str, JSON]:
    kept: list[JSON] = []
    told: list[str] = []
    for each in result[key]:
        if why := fault(each) if isinstance(each, dict) else "it is no object":
            told.append(f"{_called(each)}: {why}")
        else:
            kept.append(_without_oddities(each) if key == "tools" else each)
    meta = result.get("_meta")
    return {**result, key: kept, "_meta": {**(meta if isinstance(meta, dict) else {}), LEFT_OUT: told}}


def _called(entry: JSON) -> str:
    name = (entry.get("name") or entry.get("uri")) if isinstance(entry, dict) else None
    return one_line(name, 60) or "one without a name"


def _fault_of_tool(tool: dict[str, JSON]) -> str:
    if not is_plain_name(tool.get("name")):
        return _no_name(tool)
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        return "its schema is no object"
    if is_too_deep(tool):
        return f"its schema is nested more than {DEEPEST} levels deep"
    return "" if _is_of_the_wire(schema) else "its schema takes no object of named arguments"


def _is_of_the_wire(schema: Mapping[str, JSON]) -> bool:
    """Whether a schema, once it is said that it takes an object, has the form in which the protocol sends them."""
    kind, properties, required = schema.get("type", "object"), schema.get("properties", {}), schema.get("required", [])
    return (
        (kind == "object" or (isinstance(kind, list) and "object" in kind))
        and isinstance(properties, dict)
        and all(isinstance(each, (dict, bool)) for each in properties.values())
        and isinstance(required, list)
        and all(isinstance(each, str) for each in required)
        and isinstance(schema.get("$schema", ""), str)
    )


def _fault_of_prompt(prompt: dict[str, JSON]) -> str:
    if not is_plain_name(prompt.get("name")):
        return _no_name(prompt)
    arguments = prompt.get("arguments") or []
    fits = isinstance(arguments, list) and all(
        isinstance(each, dict) and is_plain_name(each.get("name")) for each in arguments
    )
    return "" if fits else "its arguments have no names"


def _fault_of_resource(resource: dict[str, JSON]) -> str:
    uri = resource.get("uri", resource.get("uriTemplate"))
    return "" if isinstance(uri, str) and isinstance(resource.get("name"), str) else "it has no address or name"


def _no_name(entry: Mapping[str, JSON]) -> str:
    return "its name is too long, or cannot be seen" if isinstance(entry.get("name"), str) else "it has no name"


def _without_oddities(tool: dict[str, JSON]) -> dict[str, JSON]:
    """A tool without the optional entries that are of a wrong type: they are as good as unsaid."""
    made = {
        key: value
        for key, value in tool.items()
        if key in ("name", "inputSchema") or (key in ("title", "description") and isinstance(value, str))
    }
    made["inputSchema"] = {**made["inputSchema"], "type": "object"}  # arguments always are
    meta: dict[str, JSON] = {}
    if isinstance(returns := tool.get("outputSchema"), dict):
        meta[RETURNS] = returns
    if isinstance(execution := tool.get("execution"), dict) and execution.get("taskSupport") == "required":
        meta[TASK_ONLY] = True
    if meta:
        made["_meta"] = meta
    if isinstance(hints := tool.get("annotations"), dict):
        said = {key: hints[key] for key in _HINTS if isinstance(hints.get(key), bool)}
        made["annotations"] = said | ({"title": hints["title"]} if isinstance(hints.get("title"), str) else {})
    return made


def _part(part: JSON) -> JSON:
    """A part of an answer; one that is broken, or of a kind that nobody knows, is told in words."""
    kind = part.get("type") if isinstance(part, dict) else None
    wanted = _PARTS.get(kind) if isinstance(kind, str) else None
    whole = wanted is not None and all(isinstance(part.get(key), str) for key in wanted)
    if whole and (kind != "resource" or _holds_a_resource(part)):
        return part
    words = f"a broken part of kind {one_line(kind, 40)}" if wanted is not None else "a part of an unknown kind"
    named = f" ({one_line(kind, 40)})" if wanted is None and isinstance(kind, str) else ""
    return {"type": "text", "text": f"[{words}{named} is left out]"}


def _said(message: dict[str, JSON]) -> dict[str, JSON]:
    """A message of a prompt; whoever is neither the user nor the model speaks as the user."""
    role = message.get("role")
    return {"role": role if role in ("user", "assistant") else "user", "content": _part(message.get("content"))}


def _holds_a_resource(part: Mapping[str, JSON]) -> bool:
    inner = part.get("resource")
    return (
        isinstance(inner, dict)
        and isinstance(inner.get("uri"), str)
        and (isinstance(inner.get("text"), str) or isinstance(inner.get("blob"), str))
    )
