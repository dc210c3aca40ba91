"""Server-sent events, cut out of network reads of any size in linear time (WHATWG HTML, section 9.2)."""

from __future__ import annotations

from dataclasses import dataclass

from handwork.errors import BrokenStreamError

MAX_BYTES = 64 * 1024 * 1024
"""More than this in one answer, and it is given up."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class NamedEvent:
    """An event that has a name (`event: error`)."""

    name: str
    data: bytes


class EventSplitter:
    """Feed it what the network brings; it returns the data of the events that are complete now.

    A plain event is its data as bytes; one with a name is a NamedEvent. Comments, `id` and `retry` are passed over.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._data: list[bytes] = []
        self._name = ""
        self._started = False
        self._ended_with_cr = False

    def feed(self, read: bytes) -> list[bytes | NamedEvent]:
        """Raises BrokenStreamError when the answer grows beyond MAX_BYTES."""
        self._size += len(read)
        if self._ended_with_cr and read:
            read = read.removeprefix(b"\n")  # the second half of a line end that was cut in two
            self._ended_with_cr = False
        if self._size > MAX_BYTES:
            raise BrokenStreamError(f"the answer is larger than {MAX_BYTES >> 20} MB")
        cut = max(read.rfind(b"\n"), read.rfind(b"\r")) + 1
        if not cut:  # keep pieces apart: joining at every read would cost the square of a long line
            self._pieces.append(read)
            return []
        if self._pieces:
            block = b"".join([*self._pieces, read[:cut]])
            self._pieces.clear()
        else:
            block = read[:cut]
        self._ended_with_cr = block.endswith(b"\r") and cut == len(read)
        if cut < len(read):
            self._pieces.append(read[cut:])
        return self._events(block)

    def finish(self) -> list[bytes | NamedEvent]:
        """What is left at the end of the stream, with or without its closing blank line."""
        block = b"".join(self._pieces)
        self._pieces.clear()
        return self._events(block + b"\n\n")

    def _events(self, block: bytes) -> list[bytes | NamedEvent]:
        if not self._started:
            self._started = True
            block = block.removeprefix(_BOM)
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        events: list[bytes | NamedEvent] = []
        data = self._data
        for line in block.split(b"\n")[:-1]:
            if line[:5] == b"data:":
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if data:
                    self._dispatch(events)
                else:  # an event without data is none, and its name is not the next one's
                    self._name = ""
            elif line[:6] == b"event:":
                self._name = line[6:].strip().decode(errors="replace")
        return events

    def _dispatch(self, events: list[bytes | NamedEvent]) -> None:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        events.append(NamedEvent(self._name, data) if self._name else data)
        self._data.clear()
        self._name = ""
