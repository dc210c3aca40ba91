"""One stored message as the content blocks of Anthropic's Messages API."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final

from handwork.llm.anthropic.thinking import in_order, text_block, thinking_block
from handwork.llm.chat.messages import IMAGE_LEFT_OUT, safe_arguments, safe_name
from handwork.llm.jsontext import dump
from handwork.schema import Image, Message, ModelNotice, ToolCall

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
EMPTY = b'{"type":"text","text":"(empty)"}'
"""Stands where a message says nothing: an empty text is refused."""
_UNKNOWN = "It is not known what came of this call."


class BlockWriter:
    """Writes blocks, each a JSON object; several are joined by commas."""

    def __init__(self) -> None:
        self.notices: list[ModelNotice] = []

    def said(self, message: Message) -> bytes:
        """A user's (or system's) words and pictures."""
        return b",".join(self._parts(message.content, message.images)) or EMPTY

    def orphan(self, message: Message) -> bytes:
        """A tool result whose call is not there, as words: as a result it would be refused."""
        text = f"Result of {message.name or 'a tool'}:\n{message.content or ''}"
        return b",".join(self._parts(text, message.images))

    def opened(self, message: Message, pictures: Sequence[Message] = ()) -> bytes:
        """A tool result with its pictures, open for more parts; `]}` closes it."""
        error = b',"is_error":true' if message.is_error else b""
        parts = self._parts(message.content, message.images) or [EMPTY]
        for picture in pictures:
            parts += self._parts(picture.content, picture.images)
        start = b'{"type":"tool_result","tool_use_id":%s%s,"content":[' % (_id(message.tool_call_id), error)
        return start + b",".join(parts)

    def unanswered(self, call: ToolCall) -> bytes:
        """A result for a call that has none, open as well: without one the whole history is refused."""
        start = b'{"type":"tool_result","tool_use_id":%s,"is_error":true,"content":[' % _id(call.id)
        return start + text_block(_UNKNOWN)

    def assistant(self, message: Message) -> bytes:
        """All that the model said, in its order; b'' if nothing of it can be sent."""
        thinking = [thinking_block(part) for part in message.thinking]
        return b",".join(in_order(message, thinking, [_call(call) for call in message.tool_calls]))

    def _parts(self, text: str | None, images: Iterable[Image]) -> list[bytes]:
        parts = [block] if text and (block := text_block(text)) else []
        return parts + [self._image(image) for image in images]

    def _image(self, image: Image) -> bytes:
        if not image.data:
            return self._left_out("its data is no longer at hand")
        if image.media_type not in _MEDIA_TYPES:
            return self._left_out(f"this provider takes no {image.media_type}")
        source = {"type": "base64", "media_type": image.media_type, "data": image.data}
        return b'{"type":"image","source":%s}' % dump(source)

    def _left_out(self, why: str) -> bytes:
        self.notices.append(ModelNotice("warning", f"An image was not sent: {why}."))
        return text_block(IMAGE_LEFT_OUT.format(why=why))


def _call(call: ToolCall) -> bytes:
    name, arguments = dump(safe_name(call.function.name)), safe_arguments(call.function.arguments).encode()
    return b'{"type":"tool_use","id":%s,"name":%s,"input":%s}' % (_id(call.id), name, arguments)


def _id(id: str | None) -> bytes:
    """The id of a call as the wire takes it, the same for the call and its result."""
    id = id or ""
    return dump(id if _ID.fullmatch(id) else "call_" + hashlib.sha256(id.encode(errors="replace")).hexdigest()[:32])
