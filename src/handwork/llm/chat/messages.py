"""One stored message as bytes of the chat-completions wire, made once and kept on the message."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from pydantic_core import from_json

from handwork.llm.chat.thinking import CONTENT, DETAILS, fields_to_send
from handwork.llm.jsontext import dump
from handwork.schema import JSON, Image, Message, ModelNotice, Role, ToolCall, scrub

EXTRA = "extra_content"
"""Gemini's signatures of thoughts, on messages and calls."""
IMAGE_LEFT_OUT = "[An image was left out here: {why}.]"
_NO_PLACE = "this provider takes no images in this place"
_NO_DATA = "its data is no longer at hand"
_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_SHORT_ID: Final = re.compile(r"[A-Za-z0-9]{9}")


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Facts about a model and its provider, and the settings that go with every request.

    completion_tokens: the bound is called max_completion_tokens and temperature is refused (OpenAI's reasoning models).
    stream_usage: `stream_options.include_usage` is understood.
    fold_user_turns: no user turn may follow a tool result: such turns, and the tail, become parts of that result, or, with images
        that it cannot hold, follow a word of the assistant.
    short_ids: ids of calls are exactly nine letters or digits (Mistral).
    tool_images: images may stand in tool results.
    echo: which provider parts of earlier replies the provider wants back.
    """

    model: str
    max_tokens: int | None = None
    temperature: float | None = None
    completion_tokens: bool = False
    stream_usage: bool = True
    fold_user_turns: bool = False
    short_ids: bool = False
    tool_images: bool = False
    echo: frozenset[str] = frozenset({CONTENT, DETAILS, EXTRA})

    @property
    def wire(self) -> str:
        """Names all that decides a message's bytes: bytes of the same wire can be used again."""
        flags = (self.fold_user_turns, self.short_ids, self.tool_images)
        return "-".join(["chat", *(str(int(flag)) for flag in flags), *sorted(self.echo)])


class MessageEncoder:
    """Makes a message's bytes: as a whole, or, where turns are folded, as a head and parts that stay open for more."""

    def __init__(self, options: ChatOptions) -> None:
        self._options = options
        self.notices: list[ModelNotice] = []

    def whole(self, message: Message) -> bytes:
        """The message as a JSON object."""
        role = message.role
        if role is Role.TOOL:
            content = self._text(message) if not self._shows_images(message) else self._parts(message)
            return b'{"role":"tool","tool_call_id":%s,"content":%s}' % (
                self._id(message.tool_call_id or ""),
                dump(content),
            )
        if role is Role.ASSISTANT:
            return dump(self._assistant(message))
        content = self._parts(message) if self._shows_images(message) else self._text(message)
        return b'{"role":"%s","content":%s}' % (role.value.encode(), dump(content))

    def head(self, message: Message) -> bytes:
        """What opens a message with a list of parts; it is closed by `]}`."""
        if message.role is Role.TOOL:
            return b'{"role":"tool","tool_call_id":%s,"content":[' % self._id(message.tool_call_id or "")
        return b'{"role":"user","content":['

    def parts(self, message: Message, *, in_result: bool = False) -> bytes:
        """The parts of a message, without the brackets. `in_result`: they will stand in a tool result."""
        return dump(self._parts(message, in_result=in_result))[1:-1]

    # ---- content

    def _shows_images(self, message: Message) -> bool:
        if message.role is Role.TOOL:
            return bool(message.images) and self._options.tool_images
        return bool(message.images) and message.role is Role.USER

    def _text(self, message: Message) -> str:
        """The text alone, with a note for each image that cannot be shown."""
        text = message.content or ""
        for _ in message.images:
            text = f"{text}\n{self._left_out(_NO_PLACE)}".lstrip("\n")
        return text

    def _parts(self, message: Message, *, in_result: bool = False) -> list[JSON]:
        in_result = in_result or message.role is Role.TOOL
        parts: list[JSON] = []
        if message.content or not message.images:
            parts.append({"type": "text", "text": message.content or ""})
        return parts + [self._image(image, in_result) for image in message.images]

    def _image(self, image: Image, in_result: bool) -> JSON:
        if in_result and not self._options.tool_images:
            why = _NO_PLACE
        elif not image.data:
            why = _NO_DATA
        else:
            return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}
        return {"type": "text", "text": self._left_out(why)}

    def _left_out(self, why: str) -> str:
        self.notices.append(ModelNotice("warning", f"An image was not sent: {why}."))
        return IMAGE_LEFT_OUT.format(why=why)

    # ---- assistant messages

    def _assistant(self, message: Message) -> dict[str, JSON]:
        text: str | None = message.content or ("" if not message.tool_calls else None)
        wire: dict[str, JSON] = {"role": "assistant", "content": text}
        echo = self._options.echo
        if message.thinking and echo:
            wire |= fields_to_send(message.thinking, echo)
        if message.tool_calls:
            wire["tool_calls"] = [self._call(call) for call in message.tool_calls]
        if message.opaque and EXTRA in echo and (extra := message.opaque.get(EXTRA)):
            _add_extra(wire, extra)
        return wire

    def _call(self, call: ToolCall) -> dict[str, JSON]:
        function = {"name": safe_name(call.function.name), "arguments": safe_arguments(call.function.arguments)}
        return {"id": safe_id(call.id, short=self._options.short_ids), "type": "function", "function": function}

    def _id(self, id: str) -> bytes:
        return dump(safe_id(id, short=self._options.short_ids))


def _add_extra(wire: dict[str, JSON], extra: JSON) -> None:
    if extra.get("message"):
        wire[EXTRA] = extra["message"]
    calls, extras = wire.get("tool_calls") or [], extra.get("calls") or []
    if len(calls) == len(extras):
        for call, part in zip(calls, extras, strict=True):
            if part:
                call[EXTRA] = part


def safe_id(id: str, *, short: bool = False) -> str:
    """The id of a call as the wire takes it: OpenAI refuses more than 40 characters, Mistral all but nine."""
    if not short:
        return id if len(id) <= 40 else hashlib.sha256(id.encode(errors="replace")).hexdigest()[:40]
    return id if _SHORT_ID.fullmatch(id) else hashlib.sha256(id.encode(errors="replace")).hexdigest()[:9]


def safe_name(name: str) -> str:
    """The name of a called function as the wire takes it; a model may have called something that cannot be a name."""
    return _NAME.sub("_", name)[:64] or "unnamed"


def safe_arguments(arguments: str) -> str:
    """Arguments as the wire takes them: many servers parse them again, and one bad call would break every later request."""
    arguments = scrub(arguments)
    if not arguments.strip():
        return "{}"
    try:
        if isinstance(from_json(arguments, allow_inf_nan=False), dict):
            return arguments
    except ValueError:
        pass
    return dump({"invalid_arguments": arguments}).decode()
