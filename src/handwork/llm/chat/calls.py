"""The tool calls of one streamed reply, put together from deltas as differently as servers send them."""

from __future__ import annotations

from handwork.llm.jsontext import dump, parse
from handwork.schema import JSON, Function, ToolCall, scrub


class CallSlot:
    """One call as it grows; `place` counts the calls of the reply from 0."""

    __slots__ = ("extra", "id", "name", "parts", "place")

    def __init__(self, place: int) -> None:
        self.place, self.id, self.name = place, "", ""
        self.parts: list[str] = []
        self.extra: JSON = None

    def is_whole(self) -> bool:
        """Whether one single piece brought a complete object; servers that send calls whole never continue them."""
        if len(self.parts) != 1 or not self.parts[0].rstrip().endswith("}"):
            return False
        try:
            parse(self.parts[0].encode(errors="replace"))
        except ValueError:
            return False
        return True


class CallSlots:
    """All calls of a reply, in the order in which they began."""

    def __init__(self) -> None:
        self._slots: list[CallSlot] = []
        self._by_index: dict[int, CallSlot] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, delta: JSON) -> tuple[CallSlot, str]:
        """Take one entry of `tool_calls`; returns its call and the new piece of arguments ('' if none)."""
        function = delta.get("function")
        if not isinstance(function, dict):
            function = {}
        index, id = delta.get("index"), delta.get("id")
        if type(index) is not int:
            index = None
        if id is not None and not isinstance(id, str):
            id = str(id)
        name, piece = function.get("name") or "", function.get("arguments")
        if not isinstance(piece, str):  # some servers send the object itself
            piece = "" if piece is None else dump(piece).decode()
        slot = self._find(index, id or "", name, piece)
        if id and not slot.id:
            slot.id = id
        if name and name != slot.name:
            slot.name = name if slot.parts else slot.name + name
        if piece:
            slot.parts.append(piece)
        if delta.get("extra_content"):
            slot.extra = delta["extra_content"]
        return slot, piece

    def _find(self, index: int | None, id: str, name: str, piece: str) -> CallSlot:
        if index is not None:
            slot = self._by_index.get(index)
        elif id and not name:
            slot = next((slot for slot in self._slots if slot.id == id), None) or self._last()
        else:
            slot = self._last()
        if slot is None or (name and _begins_another(slot, id, name, piece)):
            slot = CallSlot(len(self._slots))
            self._slots.append(slot)
            if index is not None:
                self._by_index[index] = slot
        return slot

    def _last(self) -> CallSlot | None:
        return self._slots[-1] if self._slots else None

    def finish(self) -> tuple[ToolCall, ...]:
        """The calls; ids and names may be empty or double, arguments are as sent."""
        return tuple(
            ToolCall(id=scrub(slot.id), function=Function(name=scrub(slot.name), arguments=scrub("".join(slot.parts))))
            for slot in self._slots
        )

    def extras(self) -> list[JSON] | None:
        """Provider parts of the calls that must be sent back (Gemini's thought signatures), or None."""
        extras = [slot.extra for slot in self._slots]
        return extras if any(extras) else None


def _begins_another(slot: CallSlot, id: str, name: str, piece: str) -> bool:
    """Whether a delta with a name begins a new call although it came under the index of `slot` (or under none).

    Servers repeat index 0 for every whole call (Gemini), leave ids out, or repeat name and id in every delta of one call.
    """
    if id and slot.id and id != slot.id:
        return True
    if slot.parts and name != slot.name:
        return True
    return piece.lstrip().startswith("{") and slot.is_whole()
