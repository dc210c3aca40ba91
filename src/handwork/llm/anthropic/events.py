"""Cuts an answer of Anthropic's Messages API into its events, streamed or not: a whole JSON body becomes the same events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from handwork.llm.answer_reads import AnswerReads
from handwork.llm.failures import Source
from handwork.llm.sse import NamedEvent
from handwork.schema import JSON

Event = dict[str, JSON]


class MessageEvents:
    """Feed it network reads; it returns the events that are complete. Raises BrokenStreamError for what is no event."""

    def __init__(self, source: Source) -> None:
        self._reads = AnswerReads(source)

    def feed(self, read: bytes) -> Iterable[Event]:
        return self._events(self._reads.feed(read))

    def finish(self) -> Iterable[Event]:
        """What is left at the end."""
        if not self._reads.is_whole:
            return self._events(self._reads.rest())
        body = self._object(self._reads.whole())
        return _as_streamed(body) if body.get("type") != "error" and "content" in body else [body]

    def _events(self, found: list[bytes | NamedEvent]) -> Iterator[Event]:
        """One by one: behind the last event of an answer nothing has to make sense."""
        for event in found:
            name, data = (event.name, event.data) if isinstance(event, NamedEvent) else ("", event)
            if data.strip() and data.strip() != b"[DONE]":  # some gateways close with it
                value = self._object(self._reads.parsed(data))
                yield value if value.get("type") else {**value, "type": name or _kind_of(value)}

    def _object(self, value: JSON) -> Event:
        if not isinstance(value, dict):
            raise self._reads.malformed("no object", str(value).encode(errors="replace"))
        return value


def _kind_of(value: Event) -> str:
    return "error" if "error" in value else ""


def _as_streamed(body: Event) -> list[Event]:
    """The events that would have brought this message."""
    events: list[Event] = [{"type": "message_start", "message": {**body, "content": []}}]
    for index, block in enumerate(body["content"]):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    ending = {name: body.get(name) for name in ("stop_reason", "stop_details")}
    return [*events, {"type": "message_delta", "delta": ending}, {"type": "message_stop"}]
