"""Token counts before they are known: bytes/4, corrected per model by what its provider reports. Downloads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic_core import to_json

from handwork.schema import JSON, History, Message, Reply, Request, Tail, Usage

IMAGE_TOKENS = 1000
"""What one image counts, about; providers ask between 85 and 1,600."""
_BYTES_PER_TOKEN = 4.0
_MESSAGE_BYTES = 16
"""The wire's own share of a message: role, quotes, ids."""


class TokenMeter:
    """Estimates the tokens of requests to one model. `observe` what was really counted, and later estimates are nearer.

    Uncorrected, the estimate is within 3 % for English, 10 % for Chinese, 20 % for code, and counts JSON 40 % too low.
    """

    def __init__(self) -> None:
        self.factor = 1.0
        """True tokens over bytes/4, as last seen; between 0.25 and 4."""
        self._tools: tuple[Mapping[str, JSON], ...] = ()
        self._tools_bytes = 0
        self._system: str | None = None
        self._system_bytes = 0
        self._history = _Counted()

    def estimate(self, request: Request) -> int:
        """Input tokens of a whole request."""
        tokens, images = self._raw(request)
        return round(tokens * self.factor) + images

    def estimate_messages(self, messages: Sequence[Message]) -> int:
        """Tokens of some messages."""
        size, images = _sizes(messages)
        return round(size / _BYTES_PER_TOKEN * self.factor) + images

    def guess(self, request: Request, reply: Reply) -> Usage:
        """What a request and its reply probably counted, for a provider that does not say."""
        return Usage(input=self.estimate(request), output=self.estimate_messages([reply.to_message()]))

    def observe(self, request: Request, input_tokens: int) -> None:
        """Take note of what the provider counted for a request (Usage.input)."""
        tokens, images = self._raw(request)
        counted = input_tokens - images
        if tokens < 50 or counted <= 0:  # too small to tell anything
            return
        seen = min(4.0, max(0.25, counted / tokens))
        self.factor += (seen - self.factor) * 0.5

    def _raw(self, request: Request) -> tuple[float, int]:
        size, images = self._history.sizes(request.messages)
        if request.system is not self._system:
            self._system, self._system_bytes = request.system, _bytes(request.system)
        size += self._system_bytes
        if request.tail is not None:
            tail_size, tail_images = _tail_sizes(request.tail)
            size, images = size + tail_size, images + tail_images
        return (size + self._size_of_tools(request.tools)) / _BYTES_PER_TOKEN, images

    def _size_of_tools(self, tools: tuple[Mapping[str, JSON], ...]) -> int:
        if tools is not self._tools:
            self._tools, self._tools_bytes = tools, sum(len(to_json(dict(tool))) for tool in tools)
        return self._tools_bytes


class _Counted:
    """The sizes of a history that grows: a step costs what is new in it."""

    def __init__(self) -> None:
        self._history: History | None = None
        self._generation = self._seen = self._size = self._images = 0

    def sizes(self, messages: Sequence[Message]) -> tuple[int, int]:
        if not isinstance(messages, History):
            return _sizes(messages)
        if messages is not self._history or messages.generation != self._generation:
            self._history, self._generation = messages, messages.generation
            self._seen = self._size = self._images = 0
        size, images = _sizes(messages[self._seen :])
        self._seen, self._size, self._images = len(messages), self._size + size, self._images + images
        return self._size, self._images


def _sizes(messages: Sequence[Message]) -> tuple[int, int]:
    """(bytes of text, tokens of images)."""
    size = images = 0
    for message in messages:
        size += _MESSAGE_BYTES + _bytes(message.content)
        for call in message.tool_calls:
            size += _MESSAGE_BYTES + len(call.function.name) + _bytes(call.function.arguments)
        for part in message.thinking:
            size += _bytes(part.text)
        images += len(message.images) * IMAGE_TOKENS
    return size, images


def _tail_sizes(tail: Tail) -> tuple[int, int]:
    return _MESSAGE_BYTES + _bytes(tail.text), len(tail.images) * IMAGE_TOKENS


def _bytes(text: str | None) -> int:
    """Bytes in UTF-8 without encoding what is plain ASCII."""
    if not text:
        return 0
    return len(text) if text.isascii() else len(text.encode(errors="replace"))
