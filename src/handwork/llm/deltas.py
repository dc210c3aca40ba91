"""The deltas of one network read, gathered to as few stream items as they are kinds in a row."""

from __future__ import annotations

from typing import Literal

from handwork.schema import StreamItem, TextDelta, ThinkingDelta, ToolArgsDelta, scrub

Kind = Literal["text", "thinking", "call"]


class Deltas:
    """Takes pieces of text, thinking and arguments; `items` is what came since it was asked last."""

    def __init__(self) -> None:
        self._items: list[StreamItem] = []
        self._pieces: list[str] = []
        self._run: tuple[Kind, int] = ("text", 0)
        self._labels: dict[int, tuple[str, str]] = {}
        self._carry = ""

    def call(self, place: int, id: str, name: str, piece: str) -> None:
        """A piece of the arguments of the call at this place among the calls of the reply; '' for its beginning."""
        self._labels[place] = id, name
        self.add("call", piece, place)

    def add(self, kind: Kind, piece: str, place: int = 0) -> None:
        """A piece of text or thinking, or of the arguments of a call that has begun."""
        run = kind, place
        if run != self._run:
            self._flush()
            self._run, self._carry = run, ""
        self._pieces.append(piece)

    def items(self) -> list[StreamItem]:
        self._flush()
        items, self._items = self._items, []
        return items

    def _flush(self) -> None:
        if not self._pieces:
            return
        text = self._whole("".join(self._pieces))
        self._pieces.clear()
        kind, place = self._run
        if kind == "call":
            id, name = self._labels[place]
            self._items.append(ToolArgsDelta(place, scrub(id), scrub(name), text))
        elif text:
            self._items.append(TextDelta(text) if kind == "text" else ThinkingDelta(text))

    def _whole(self, text: str) -> str:
        """Hold back half of a surrogate pair that was split over two events; what stays alone is replaced."""
        if not self._carry and text.isascii():
            return text
        text, self._carry = self._carry + text, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._carry = text[:-1], text[-1]
        return scrub(text)
