"""Messages: who said what, the calls in them, and the memory that keeps them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import field
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass as validated

from handwork.schema.values import JSON, STRICT, scrub


class Role(StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


def _scrub_fields(value: object, *names: str) -> None:
    """Replace lone surrogates in a new object's texts, whoever made it: in memory, one would break every later request."""
    for name in names:
        text = getattr(value, name)
        if text is not None and (clean := scrub(text)) is not text:
            object.__setattr__(value, name, clean)


@validated(frozen=True, slots=True, config=STRICT)
class Function:
    """The function part of a call: `arguments` is the raw JSON text as the model sent it."""

    name: str
    arguments: str = "{}"

    def __post_init__(self) -> None:
        _scrub_fields(self, "name", "arguments")


@validated(frozen=True, slots=True, config=STRICT)
class ToolCall:
    """One call that the model asks for. `id` is unique in a history."""

    id: str
    function: Function
    type: Literal["function"] = "function"

    def __post_init__(self) -> None:
        _scrub_fields(self, "id")


@validated(frozen=True, slots=True, config=STRICT)
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


@validated(frozen=True, slots=True, config=STRICT)
class Thinking:
    """A piece of a model's reasoning; `opaque` is whatever the provider wants back byte for byte (signatures, encrypted text)."""

    text: str = ""
    opaque: dict[str, JSON] | None = None

    def __post_init__(self) -> None:
        _scrub_fields(self, "text")


@validated(frozen=True, slots=True, config=STRICT)
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
        _scrub_fields(self, "content", "tool_call_id", "name")

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
    """The list behind Memory: appending is cheap and expected, anything else makes a new `generation`."""

    generation = 0


def _rewriting(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def wrapper(self: History, *args: Any, **kwargs: Any) -> Any:
        self.generation += 1
        return method(self, *args, **kwargs)

    return wrapper


for _name in ("__setitem__", "__delitem__", "__imul__", "insert", "pop", "remove", "clear", "sort", "reverse"):
    setattr(History, _name, _rewriting(_name))


class Memory:
    """An agent's history. It never drops a message.

    `journaled` counts the messages at its beginning that the journal holds; `generation` grows when something else than
    appending happened.
    """

    __slots__ = ("_marked", "_messages", "journaled")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages = History(messages)
        self.journaled = self._marked = 0

    @property
    def messages(self) -> list[Message]:
        return self._messages

    @messages.setter
    def messages(self, messages: Iterable[Message]) -> None:
        if messages is not self._messages:
            generation = self._messages.generation
            self._messages = History(messages)
            self._messages.generation = generation + 1

    @property
    def generation(self) -> int:
        return self._messages.generation

    @property
    def rewritten(self) -> bool:
        """Whether something else than appending happened since the last `mark`."""
        return self._messages.generation != self._marked

    def mark(self, journaled: int | None = None) -> None:
        """Note that the journal holds this many of the messages (all of them by default), as they are now."""
        self._marked = self._messages.generation
        self.journaled = len(self._messages) if journaled is None else journaled

    def fresh(self) -> Memory:
        """An independent memory with the same messages."""
        return Memory(self._messages)

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
