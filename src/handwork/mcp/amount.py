"""How many values a JSON text holds, counted before it is parsed: megabytes of small ones become gigabytes of memory."""

from __future__ import annotations

MOST_VALUES = 500_000
"""Of one message. A text counts as one, however long it is."""
_PIECE = 1 << 16


class TooMany(Exception):
    """A message holds more values than any may."""


class Amount:
    """Counts the values of JSON that comes in pieces, in linear time. In a stream of `events` an empty line begins the next message."""

    def __init__(self, most: int = MOST_VALUES, *, events: bool = False) -> None:
        self._most, self._events, self._values = most, events, 0
        self._inside = False
        self._kept = b""
        """A backslash that the last piece ended with: it belongs to what comes."""
        self._line, self._return = b"", False
        """Something of the line that is open, and whether a line feed still belongs to the last end of a line."""

    def feed(self, data: bytes) -> None:
        """Count on. Raises TooMany."""
        data = self._kept + data
        odd = (len(data) - len(data.rstrip(b"\\"))) % 2
        self._kept, data = data[len(data) - odd :], data[: len(data) - odd]
        for line in data.replace(b"\\\\", b"").replace(b'\\"', b"").splitlines(keepends=True):
            self._count(line)

    def _count(self, line: bytes) -> None:
        text = line.rstrip(b"\r\n")
        between = text.split(b'"')
        quotes = len(between) - 1
        self._values += (quotes + (not self._inside)) // 2 + b"".join(between[self._inside :: 2]).count(b",")
        self._inside ^= bool(quotes % 2)
        self._line = text[:1] or self._line
        if len(text) < len(line) and not (line == b"\n" and self._return):
            self._end_line()
        self._return = line.endswith(b"\r")
        if self._values > self._most:
            raise TooMany

    def _end_line(self) -> None:
        """No text goes on behind the end of a line: so a quote that is never closed hides nothing."""
        self._inside = False
        if self._events:
            self._values = self._values + 1 if self._line else 0
        self._line = b""


def has_too_many(message: bytes | bytearray) -> bool:
    """Whether a whole message holds more values than any may; of most it is known at once."""
    if len(message) <= MOST_VALUES or message.count(b",") + message.count(b'"') // 2 < MOST_VALUES:
        return False
    amount = Amount()
    try:
        for at in range(0, len(message), _PIECE):
            amount.feed(bytes(message[at : at + _PIECE]))
    except TooMany:
        return True
    return False
