"""Encoder of Anthropic's Messages API: a Request as the bytes of a body. Pure; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from handwork.llm.anthropic.blocks import BlockWriter
from handwork.llm.anthropic.models import MessagesOptions
from handwork.llm.anthropic.turns import Turns
from handwork.llm.chat.messages import safe_name
from handwork.llm.jsontext import dump
from handwork.llm.wire import Body
from handwork.schema import JSON, Message, Request, Role, ToolChoice

_MARK: dict[str, JSON] = {"cache_control": {"type": "ephemeral"}}
_VARIANTS = ("oneOf", "anyOf", "allOf")


class MessagesEncoder:
    """Encodes requests to one model. Order: model and settings, tools, system, history, tail, tool_choice.

    What was encoded before is joined, not encoded again. Three places are marked for the cache: the end of the system prompt
    (else of the tools), and where the stored parts of this request and of the one before it end.
    """

    def __init__(self, options: MessagesOptions) -> None:
        self._options = options
        self._writer = BlockWriter()
        self._turns = Turns(options, self._writer)
        self._known: list[Message] = []
        """The messages that these turns hold: all up to the last one of the model's."""
        self._beginning: tuple[object, ...] = ()
        self._tools: tuple[Mapping[str, JSON], ...] = ()
        self._prefix = b""

    def encode(self, request: Request) -> Body:
        """Raises ValueError for a tool whose schema is no JSON."""
        turns = self._turned(request.messages)
        if turns.called and not request.tools:
            request = replace(request, tools=_named(turns.called), tool_choice=ToolChoice.NONE)
        thinks = self._thinks(turns)
        stored = b"".join((self._prefixed(request, thinks), *turns.stored()))
        rest = (turns.ending(request.tail), b"]", self._choice(request, thinks), b"}")
        notices, self._writer.notices = tuple(self._writer.notices), []
        return Body(b"".join((stored, *rest)), len(stored), notices)

    def _thinks(self, turns: Turns) -> bool:
        """Whether thinking is switched on. With a budget it cannot be in the midst of calls that began without a thought
        (another model's, or made before it was configured)."""
        return self._options.thinking is not None and (turns.thought or not isinstance(self._options.thinking, int))

    def _turned(self, messages: Sequence[Message]) -> Turns:
        """The history as turns; only what is new since the last request is worked on, as long as it only grew."""
        known = self._known
        if len(messages) < len(known) or list(messages[: len(known)]) != known:
            known.clear()
            self._turns = Turns(self._options, self._writer)
        new = list(messages[len(known) :])
        last = next((at for at in range(len(new), 0, -1) if new[at - 1].role is Role.ASSISTANT), 0)
        for message in new[:last]:
            self._turns.add(message)
            known.append(message)
        return self._turns.ended(new[last:])

    # ---- what stands before the history

    def _prefixed(self, request: Request, thinks: bool) -> bytes:
        beginning = (request.max_tokens, request.temperature, request.system, thinks)
        # the same tuple of tools comes at every step; another one that is equal keeps the bytes as they were
        same_tools = request.tools is self._tools or request.tools == self._tools
        if not same_tools or beginning != self._beginning or not self._prefix:
            system = (request.system or "").strip() and request.system
            fields = self._settings(request, thinks) | _tools(request.tools, marked=not system)
            if system:
                fields["system"] = [{"type": "text", "text": system} | _MARK]
            self._prefix = dump(fields)[:-1] + b',"messages":['
            self._beginning, self._tools = beginning, request.tools
        return self._prefix

    def _settings(self, request: Request, thinks: bool) -> dict[str, JSON]:
        options = self._options
        limit = request.max_tokens or options.max_tokens
        settings: dict[str, JSON] = {"model": options.model, "stream": True}
        settings["max_tokens"] = limit + options.room_to_think(asked=thinks)
        if thinks:
            return settings | options.thinking_fields()
        temperature = options.temperature if request.temperature is None else request.temperature
        if temperature is not None and options.takes_temperature:
            settings["temperature"] = temperature
        return settings

    def _choice(self, request: Request, thinks: bool) -> bytes:
        """tool_choice stands last: it may change from request to request. Without tools it is refused."""
        if not request.tools:
            return b""
        choice = ToolChoice(request.tool_choice).value.encode()
        if request.tool_choice == ToolChoice.REQUIRED:
            choice = b"auto" if thinks or self._options.thinks_unasked else b"any"
        return b',"tool_choice":{"type":"%s"}' % choice


def _named(names: Iterable[str]) -> tuple[Mapping[str, JSON], ...]:
    """Tools of these names: a history with calls is refused where no tools are declared."""
    return tuple({"function": {"name": name}} for name in sorted({safe_name(name) for name in names}))


def _tools(tools: tuple[Mapping[str, JSON], ...], *, marked: bool) -> dict[str, JSON]:
    if not tools:
        return {}
    written = [_tool(tool["function"]) for tool in sorted(tools, key=lambda tool: str(tool["function"]["name"]))]
    if marked:
        written[-1] |= _MARK
    return {"tools": written}


def _tool(function: Mapping[str, JSON]) -> dict[str, JSON]:
    tool: dict[str, JSON] = {"name": safe_name(str(function["name"]))}
    if description := function.get("description"):
        tool["description"] = description
    return tool | {"input_schema": _schema(function.get("parameters") or {})}


def _schema(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """The schema as an object without variants at its top, as it is asked for: what the variants allow is allowed together.
    Arguments are checked against the real one before a tool runs."""
    plain = {name: value for name, value in schema.items() if name not in _VARIANTS} | {"type": "object"}
    variants = [variant for name in _VARIANTS for variant in schema.get(name) or () if isinstance(variant, dict)]
    if variants:
        allowed = {name: value for variant in variants for name, value in (variant.get("properties") or {}).items()}
        plain["properties"] = allowed | (plain.get("properties") or {})
    return plain
