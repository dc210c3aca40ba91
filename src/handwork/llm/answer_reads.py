"""The network reads of an answer as events, or, from a server that does not stream, as one JSON text."""

from __future__ import annotations

from handwork.errors import BrokenStreamError
from handwork.llm.failures import Source
from handwork.llm.jsontext import parse
from handwork.llm.sse import MAX_BYTES, EventSplitter, NamedEvent
from handwork.schema import JSON

_BOM = b"\xef\xbb\xbf"
_HEAD = 4096
"""Bytes of blank space after which an answer is taken for events."""


class AnswerReads:
    """Feed it network reads. Raises BrokenStreamError for an answer without end, and for what is no JSON."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._events = EventSplitter()
        self._head: bytes | None = b""
        """What came before the first byte that tells plain JSON from events; None once it came."""
        self._body: list[bytes] | None = None
        self._size = 0

    def feed(self, read: bytes) -> list[bytes | NamedEvent]:
        """The events that are complete now."""
        if self._head is not None:
            read, self._head = self._head + read, None
            start = read.removeprefix(_BOM).lstrip()
            if (not start or _BOM.startswith(start)) and len(read) < _HEAD:
                self._head = read
                return []
            if start[:1] in (b"{", b"["):
                self._body = []
        if self._body is None:
            return self._events.feed(read)
        self._size += len(read)
        if self._size > MAX_BYTES:
            raise self.broken(f"the answer is larger than {MAX_BYTES >> 20} MB")
        self._body.append(read)
        return []

    def rest(self) -> list[bytes | NamedEvent]:
        """The events that are left at the end."""
        return self._events.feed(self._head or b"") + self._events.finish()

    @property
    def is_whole(self) -> bool:
        """Whether the answer is one JSON text."""
        return self._body is not None

    def whole(self) -> JSON:
        """That JSON text, at the end."""
        return self.parsed(b"".join(self._body or ()).lstrip().removeprefix(_BOM))

    def parsed(self, data: bytes) -> JSON:
        """The JSON of an event."""
        try:
            return parse(data)
        except ValueError as error:
            why = str(error)
        raise self.malformed(why, data)  # out here, since the parser's error holds the whole text

    def malformed(self, why: str, data: bytes) -> BrokenStreamError:
        """The error for an event that makes no sense; masked before it is cut."""
        return self.broken(f"malformed event ({why}): {self._source.clean(data[:4096].decode(errors='replace'))[:200]}")

    def broken(self, message: str) -> BrokenStreamError:
        return self._source.error(BrokenStreamError, message)
