"""Encoder of OpenAI chat completions: a Request as the bytes of a body. Pure; no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from handwork.llm.chat.messages import ChatOptions, MessageEncoder
from handwork.llm.jsontext import dump
from handwork.llm.wire import Body
from handwork.schema import JSON, Message, Request, Role, Tail, ToolChoice


class ChatEncoder:
    """Encodes requests to one model. Order: model and settings, tools, system, history, tail, tool_choice.

    What was encoded before is joined, not encoded again: messages carry their bytes, tools and system are kept.
    """

    def __init__(self, options: ChatOptions) -> None:
        self._options = options
        self._wire = options.wire
        self._messages = MessageEncoder(options)
        self._beginning: tuple[object, ...] = ()
        self._tools: tuple[Mapping[str, JSON], ...] = ()
        self._prefix = b""

    def encode(self, request: Request) -> Body:
        """Raises ValueError for a tool whose schema is no JSON."""
        prefix = self._prefixed(request)
        write = self._folded if self._options.fold_user_turns else self._plain
        history, ending = write(request)
        stored = prefix + history
        notices, self._messages.notices = tuple(self._messages.notices), []
        return Body(b"".join((stored, ending, b"]", _choice(request), b"}")), len(stored), notices)

    # ---- what stands before the history

    def _prefixed(self, request: Request) -> bytes:
        beginning = (request.max_tokens, request.temperature, request.system)
        # the same tuple of tools comes at every step; another one that is equal keeps the bytes as they were
        same_tools = request.tools is self._tools or request.tools == self._tools
        if not same_tools or beginning != self._beginning:
            self._prefix = self._settings(request) + _tools(request.tools) + b',"messages":['
            if request.system is not None:
                self._prefix += b'{"role":"system","content":%s}' % dump(request.system)
            self._beginning, self._tools = beginning, request.tools
        return self._prefix

    def _settings(self, request: Request) -> bytes:
        options = self._options
        settings: dict[str, JSON] = {"model": options.model, "stream": True}
        if options.stream_usage:
            settings["stream_options"] = {"include_usage": True}
        limit = request.max_tokens or options.max_tokens
        if limit:
            settings["max_completion_tokens" if options.completion_tokens else "max_tokens"] = limit
        temperature = options.temperature if request.temperature is None else request.temperature
        if temperature is not None and not options.completion_tokens:
            settings["temperature"] = temperature
        return dump(settings)[:-1]

    # ---- history and tail: (what is stored, what ends the list of messages)

    def _plain(self, request: Request) -> tuple[bytes, bytes]:
        wire = self._wire
        fragments = [b""] if request.system is not None else []
        for message in request.messages:
            encoded = getattr(message, "encoded", None)
            fragments.append(
                encoded[1] if encoded and encoded[0] == wire else self._keep(message, wire, self._messages.whole)
            )
        if request.tail is None:
            return b",".join(fragments), b""
        tail = self._messages.whole(_turn(request.tail))
        return b",".join(fragments), b"," + tail if fragments else tail

    def _folded(self, request: Request) -> tuple[bytes, bytes]:
        """User turns become parts of the message before them, if that is a tool result or a user turn.

        One with images that a result cannot hold stands on its own instead, behind a word of the assistant.
        """
        pieces: list[bytes] = []
        before = Role.SYSTEM if request.system is not None else None
        for message in request.messages:
            pieces.append(self._next_folded(message, before))
            before = self._open_after(message, before)
        ending = b""
        if request.tail is not None:
            turn = _turn(request.tail)
            ending = self._next_folded(turn, before)
            before = self._open_after(turn, before)
        return b"".join(pieces), ending + (b"]}" if before in _OPEN else b"")

    def _next_folded(self, message: Message, before: Role | None) -> bytes:
        wire = f"{self._wire}<{before}"
        encoded = getattr(message, "encoded", None)
        if encoded and encoded[0] == wire:
            found: bytes = encoded[1]
            return found
        return self._keep(message, wire, lambda message: self._fold(message, before))

    def _fold(self, message: Message, before: Role | None) -> bytes:
        write = self._messages
        bridged = self._is_bridged(message, before)
        if message.role is Role.USER and before in _OPEN and not bridged:
            return b"," + write.parts(message, in_result=before is Role.TOOL)
        closing = b"" if before is None else b"]}," if before in _OPEN else b","
        closing += _BRIDGE if bridged else b""
        if message.role in _OPEN:
            return closing + write.head(message) + write.parts(message)
        return closing + write.whole(message)

    def _is_bridged(self, message: Message, before: Role | None) -> bool:
        """Whether a user turn behind a tool result holds images that have no place in it."""
        return (
            bool(message.role is Role.USER and before is Role.TOOL and message.images) and not self._options.tool_images
        )

    def _open_after(self, message: Message, before: Role | None) -> Role:
        """Whose list of parts is open after this message."""
        folded = message.role is Role.USER and before is Role.TOOL and not self._is_bridged(message, before)
        return Role.TOOL if folded else message.role

    @staticmethod
    def _keep(message: Message, wire: str, write: Callable[[Message], bytes]) -> bytes:
        fragment = write(message)
        object.__setattr__(message, "encoded", (wire, fragment))
        return fragment


_OPEN = (Role.USER, Role.TOOL)
"""Where turns are folded, these end with a list of parts that stays open."""
_BRIDGE = b'{"role":"assistant","content":"I will look at the image."},'
"""What stands between a tool result and a user turn with images, where one may not follow the other (Mistral)."""


def _turn(tail: Tail) -> Message:
    return Message(role=Role.USER, content=tail.text, images=tail.images)


def _tools(tools: tuple[Mapping[str, JSON], ...]) -> bytes:
    if not tools:
        return b""
    ordered = sorted(tools, key=lambda tool: str(tool["function"]["name"]))
    return b',"tools":[%s]' % b",".join([dump(dict(tool)) for tool in ordered])


def _choice(request: Request) -> bytes:
    """tool_choice stands last: it may change from request to request. Without tools servers refuse it."""
    if not request.tools:
        return b""
    return b',"tool_choice":"%s"' % ToolChoice(request.tool_choice).value.encode()
