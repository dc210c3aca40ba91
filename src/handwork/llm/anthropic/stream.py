"""Decoder of Anthropic's Messages API: bytes in, stream items out, one Reply at the end. Pure; no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from handwork.errors import BrokenStreamError, ContentFilterError
from handwork.llm.anthropic.events import MessageEvents
from handwork.llm.anthropic.thinking import KINDS, order_of, thinking_of
from handwork.llm.chat.ends import FINISH
from handwork.llm.deltas import Deltas
from handwork.llm.failures import SENSELESS, Source, error_of
from handwork.llm.jsontext import dump, parse
from handwork.schema import JSON, Function, Reply, StreamItem, ToolCall, Usage, scrub

_PAUSED = "pause_turn"
_GROWING = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
}
"""For each delta the kind of block that it belongs to, and the field that grows."""
_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class _Block:
    """One content block as it grows: its fields from the start, and the pieces that came since."""

    __slots__ = ("arguments", "fields", "grown", "place")

    def __init__(self, fields: dict[str, JSON]) -> None:
        self.fields = fields
        self.grown: dict[str, list[str]] = {}
        self.arguments: list[str] = []
        self.place = 0

    def whole(self) -> dict[str, JSON]:
        grown = {name: str(self.fields.get(name) or "") + "".join(pieces) for name, pieces in self.grown.items()}
        return self.fields | grown

    def input(self) -> str:
        """The arguments as the model wrote them; what stood in the block from the start if nothing followed."""
        return "".join(self.arguments) or dump(self.fields.get("input") or {}).decode()


class MessageStream:
    """One answer. `feed` it network reads as they come, then call `finish`. An answer that is plain JSON is read as well."""

    def __init__(self, source: Source | None = None) -> None:
        self._source = source or Source()
        self._events = MessageEvents(self._source)
        self._deltas = Deltas()
        self._blocks: dict[int, _Block] = {}
        self._begun = False
        self._model = ""
        self._counted: dict[str, int] = {}
        self._stop = ""
        self._why = ""
        self.done = False
        """message_stop came: nothing that matters follows."""

    @property
    def ended(self) -> bool:
        """Whether the answer has its end."""
        return self.done

    def feed(self, read: bytes) -> list[StreamItem]:
        """The items that this read completes.

        Raises:
            ModelError: an error inside the stream, typed by its body; BrokenStreamError for what makes no sense.
        """
        try:
            return [] if self.done else self._take(self._events.feed(read))
        except SENSELESS as error:  # the boundary: whatever a server sends, it is no error of ours
            why = type(error).__name__
        raise self._senseless(why)

    def finish(self) -> Reply:
        """The whole answer.

        Raises:
            BrokenStreamError: the stream ended without message_stop, or without a known reason to stop.
            ContentFilterError: a refusal in place of an answer.
            ModelError: an error in the body.
        """
        try:
            if not self.done:
                self._take(self._events.finish())
            if not self.done:
                raise self._broken("the answer ended without message_stop")
            return self._reply()
        except SENSELESS as error:
            why = type(error).__name__
        raise self._senseless(why)

    def _broken(self, message: str) -> BrokenStreamError:
        return self._source.error(BrokenStreamError, message)

    def _senseless(self, why: str) -> BrokenStreamError:
        return self._broken(f"the answer has a shape that makes no sense ({why})")

    # ---- events

    def _take(self, events: Iterable[dict[str, Any]]) -> list[StreamItem]:
        for event in events:
            kind = event.get("type")
            if kind == "content_block_delta":
                self._grow(self._block(event["index"]), event["delta"])
            elif kind == "content_block_start":
                self._begin(event["index"], event["content_block"])
            elif kind == "message_start":
                self._start(event["message"])
            elif kind == "message_delta":
                self._end(event.get("delta") or {}, event.get("usage") or {})
            elif kind == "message_stop":
                self.done = True
                break
            elif kind == "error" or "error" in event:
                raise error_of(self._source, None, event)
            # ping, content_block_stop, and kinds of later versions bring nothing
        return self._deltas.items()

    def _start(self, message: dict[str, JSON]) -> None:
        if self._begun:
            raise self._broken("a second message began in the answer")
        self._begun = True
        self._model = str(message.get("model") or "")
        self._count(message.get("usage") or {})

    def _block(self, index: JSON) -> _Block:
        if index not in self._blocks:
            raise self._broken(f"a piece of a block that never began ({str(index)[:20]})")
        return self._blocks[index]

    def _begin(self, index: int, fields: dict[str, JSON]) -> None:
        if not self._begun or index in self._blocks:
            raise self._broken(f"block {str(index)[:20]} began twice, or before its message")
        kind = fields["type"]
        block = self._blocks[index] = _Block({"text": "", **fields} if kind == "text" else dict(fields))
        if kind == "tool_use":
            block.place = sum(each.fields["type"] == "tool_use" for each in self._blocks.values()) - 1
            begun = block.input() if fields.get("input") else ""
            self._deltas.call(block.place, str(fields.get("id") or ""), str(fields.get("name") or ""), begun)
        elif kind in ("text", "thinking") and (said := fields.get(kind)):
            self._deltas.add("text" if kind == "text" else "thinking", said)

    def _grow(self, block: _Block, delta: dict[str, JSON]) -> None:
        kind, of = delta["type"], block.fields["type"]
        if kind == "input_json_delta":
            piece = delta["partial_json"]
            block.arguments.append(piece)
            if of == "tool_use" and piece:
                self._deltas.add("call", piece, block.place)
        elif kind in _GROWING:
            wanted, name = _GROWING[kind]
            if of != wanted:
                raise self._broken(f"a {kind} in a block of kind {str(of)[:40]!r}")
            block.grown.setdefault(name, []).append(delta[name])
            if name != "signature":
                self._deltas.add("text" if name == "text" else "thinking", delta[name])
        elif of not in ("text", "tool_use", *KINDS):  # a block that is only kept
            block.fields.update({name: value for name, value in delta.items() if name != "type"})

    def _end(self, delta: dict[str, JSON], usage: dict[str, JSON]) -> None:
        self._count(usage)
        self._stop = str(delta.get("stop_reason") or self._stop)
        details = delta.get("stop_details")
        if isinstance(details, dict):
            self._why = str(details.get("explanation") or details.get("category") or "")

    def _count(self, usage: dict[str, JSON]) -> None:
        """Counts are running totals, and a later event may leave some out."""
        for name in _COUNTS:
            number = usage.get(name)
            if isinstance(number, int | float) and 0 < number < 1e12:
                self._counted[name] = max(int(number), self._counted.get(name, 0))

    # ---- the reply

    def _reply(self) -> Reply:
        finish = self._finish_reason()
        blocks = [self._whole(block) for _, block in sorted(self._blocks.items())]
        calls = tuple(
            ToolCall(
                id=str(block.get("id") or ""), function=Function(name=str(block["name"]), arguments=block["input"])
            )
            for block in blocks
            if block["type"] == "tool_use"
        )
        text = "".join(scrub(block["text"]) for block in blocks if block["type"] == "text")
        return Reply(
            content=text or None,
            tool_calls=calls,
            thinking=tuple(thinking_of(block) for block in blocks if block["type"] in KINDS),
            usage=self._usage(),
            finish_reason="tool_calls" if calls and finish == "stop" else finish,
            model=scrub(self._model),
            opaque=order_of(blocks),
        )

    @staticmethod
    def _whole(block: _Block) -> dict[str, JSON]:
        fields = block.whole()
        if fields["type"] == "tool_use":
            return fields | {"input": block.input()}
        if block.arguments:  # a server's own tool: kept as the object that it is
            return fields | {"input": parse(block.input().encode(errors="replace"))}
        return fields

    def _finish_reason(self) -> str:
        """The reason to stop in OpenAI's words; an unknown one is no end, and never a success."""
        finish = "length" if self._stop == _PAUSED else FINISH.get(self._stop)  # a pause: there is more to come
        if finish is None:
            raise self._broken(f"the answer ended with {self._stop[:100]!r}")
        if finish == "content_filter":
            raise self._source.error(ContentFilterError, f"the model declined: {self._why}".rstrip(": "))
        return finish

    def _usage(self) -> Usage | None:
        fresh, cached, written, output = (self._counted.get(name, 0) for name in _COUNTS)
        if not fresh + cached + written + output:
            return None
        return Usage(input=fresh + cached + written, cached=cached, written=written, output=output)
