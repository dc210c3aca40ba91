"""Cuts an answer of Anthropic's Messages API into its events, streamed or not: a whole JSON body becomes the same events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from handwork.errors import BrokenStreamError
from handwork.llm.failures import Source
from handwork.llm.jsontext import parse
from handwork.llm.sse import MAX_BYTES, EventSplitter, NamedEvent
from handwork.schema import JSON

_BOM = b"\xef\xbb\xbf"
_HEAD = 4096
"""Bytes of blank space after which an answer is taken for events."""
Event = dict[str, JSON]


class MessageEvents:
    """Feed it network reads; it returns the events that are complete. Raises BrokenStreamError for what is no event."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._splitter = EventSplitter()
        self._head: bytes | None = b""
        """What came before the first byte that tells plain JSON from events; None once it came."""
        self._body: list[bytes] | None = None
        self._size = 0

    def feed(self, read: bytes) -> Iterable[Event]:
        if self._head is not None:
            read, self._head = self._head + read, None
            start = read.removeprefix(_BOM).lstrip()
            if (not start or _BOM.startswith(start)) and len(read) < _HEAD:
                self._head = read
                return []
            if start[:1] in (b"{", b"["):
                self._body = []
        if self._body is None:
            return self._events(self._splitter.feed(read))
        self._size += len(read)
        if self._size > MAX_BYTES:
            raise self._broken(f"the answer is larger than {MAX_BYTES >> 20} MB")
        self._body.append(read)
        return []

    def finish(self) -> Iterable[Event]:
        """What is left at the end."""
        if self._body is None:
            return self._events(self._splitter.feed(self._head or b"") + self._splitter.finish())
        body = self._parsed(b"".join(self._body).lstrip().removeprefix(_BOM))
        return _as_streamed(body) if body.get("type") != "error" and "content" in body else [body]

    def _events(self, found: list[bytes | NamedEvent]) -> Iterator[Event]:
        """One by one: behind the last event of an answer nothing has to make sense."""
        for event in found:
            name, data = (event.name, event.data) if isinstance(event, NamedEvent) else ("", event)
            if data.strip() and data.strip() != b"[DONE]":  # some gateways close with it
                value = self._parsed(data)
                yield value if value.get("type") else {**value, "type": name or _kind_of(value)}

    def _parsed(self, data: bytes) -> Event:
        try:
            value = parse(data)
        except ValueError as error:
            why = str(error)
        else:
            if isinstance(value, dict):
                return value
            why = "no object"
        # raised out here, since the parser's error holds the whole text; masked before it is cut
        shown = self._source.clean(data[:4096].decode(errors="replace"))[:200]
        raise self._broken(f"malformed event ({why}): {shown}")

    def _broken(self, message: str) -> BrokenStreamError:
        return self._source.error(BrokenStreamError, message)


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
