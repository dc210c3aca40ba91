"""Decoder of OpenAI chat completions: bytes in, stream items out, one Reply at the end. Pure; no I/O."""

from __future__ import annotations

from handwork.errors import BrokenStreamError, ContentFilterError
from handwork.llm.answer_reads import AnswerReads
from handwork.llm.chat.calls import CallSlots
from handwork.llm.chat.ends import FAILED, FINISH, finish_word
from handwork.llm.chat.thinking import ThinkingParts
from handwork.llm.chat.usage import cost_of, usage_of
from handwork.llm.deltas import Deltas
from handwork.llm.failures import SENSELESS, Source, error_of
from handwork.llm.jsontext import parse, sendable
from handwork.llm.sse import NamedEvent
from handwork.schema import JSON, Reply, StreamItem, Usage, scrub


class ChatStream:
    """One answer. `feed` it network reads as they come, then call `finish`.

    An answer that is plain JSON (a server that ignores `stream`) is read as well. All that one read brings of the same kind is
    one item.
    """

    def __init__(self, source: Source | None = None) -> None:
        self._source = source or Source()
        self._reads = AnswerReads(self._source)
        self._deltas = Deltas()
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._thinking = ThinkingParts()
        self._calls = CallSlots()
        self._begun: set[int] = set()
        self._extra: JSON = None
        self._usage: Usage | None = None
        self._cost: float | None = None
        self._model = ""
        self._finish = ""
        self._chosen = False
        self.done = False
        """[DONE] came: nothing that matters follows."""

    @property
    def ended(self) -> bool:
        """Whether the answer has its end (a finish reason or [DONE]), though more may follow (usage)."""
        return self.done or bool(self._finish)

    def feed(self, read: bytes) -> list[StreamItem]:
        """The items that this read completes.

        Raises:
            ModelError: an error inside the stream, typed by its body; BrokenStreamError for what makes no sense.
        """
        try:
            return self._take(self._reads.feed(read))
        except SENSELESS as error:  # the boundary: whatever a server sends, it is no error of ours
            why = type(error).__name__
        raise self._senseless(why)

    def _take(self, events: list[bytes | NamedEvent]) -> list[StreamItem]:
        for event in events:
            if isinstance(event, NamedEvent):
                self._named(event)
            else:
                self._event(event)
        return self._deltas.items()

    def _named(self, event: NamedEvent) -> None:
        if event.name == "error":
            value = self._reads.parsed(event.data)
            raise error_of(self._source, None, value if isinstance(value, dict) else {"message": str(value)})
        if event.data:
            self._event(event.data)

    def _event(self, data: bytes) -> None:
        if data.strip() == b"[DONE]":
            self.done = True
        elif data.strip():
            for value in self._values(data):
                self._chunk(value)

    def _values(self, data: bytes) -> list[JSON]:
        if b"\n" not in data:
            return [self._reads.parsed(data)]
        try:
            return [parse(data)]
        except ValueError:
            pass  # a server that leaves out the blank line between its events
        lines = [line for line in data.split(b"\n") if line.strip() not in (b"", b"[DONE]")]
        self.done = self.done or b"[DONE]" in data
        return [self._reads.parsed(line) for line in lines]

    def _broken(self, message: str) -> BrokenStreamError:
        return self._source.error(BrokenStreamError, message)

    def _senseless(self, why: str) -> BrokenStreamError:
        return self._broken(f"the answer has a shape that makes no sense ({why})")

    # ---- one chunk

    def _chunk(self, chunk: JSON) -> None:
        if isinstance(chunk, list) and len(chunk) == 1:  # Google wraps its errors so
            chunk = chunk[0]
        if not isinstance(chunk, dict):
            raise self._broken(f"an event that is no object: {self._source.clean(str(chunk))[:200]}")
        choices = chunk.get("choices")
        if chunk.get("error") or (choices is None and (chunk.get("object") == "error" or "detail" in chunk)):
            raise error_of(self._source, None, chunk)
        if not self._model and isinstance(model := chunk.get("model"), str):
            self._model = model
        if usage := chunk.get("usage"):
            self._count(usage)
        if choices and isinstance(choices, list):
            choice = choices[0]
            if isinstance(choice, dict) and not choice.get("index"):
                self._choice(choice)

    def _count(self, usage: JSON) -> None:
        self._usage = usage_of(usage) or self._usage
        self._cost = cost_of(usage) or self._cost

    def _choice(self, choice: dict[str, JSON]) -> None:
        self._chosen = True
        delta = choice.get("delta") or choice.get("message")
        if delta and isinstance(delta, dict):
            self._delta(delta)
        elif isinstance(text := choice.get("text"), str):  # the older completions wire
            self._say(text)
        if reason := choice.get("finish_reason"):
            if choice.get("error"):
                raise error_of(self._source, None, choice)
            self._finish = finish_word(str(reason))

    def _delta(self, delta: dict[str, JSON]) -> None:
        if len(delta) > 1 or "content" not in delta:  # most deltas hold nothing else
            if thought := self._thinking.add(delta):
                self._deltas.add("thinking", thought)
            if isinstance(refusal := delta.get("refusal"), str) and refusal:
                self._refusal.append(refusal)
            if extra := delta.get("extra_content"):
                self._extra = extra
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                self._say(content)
            else:
                self._parts(content)
        for call in delta.get("tool_calls") or ():
            if isinstance(call, dict):
                self._call(call)
        if isinstance(function := delta.get("function_call"), dict):
            self._call({"index": 0, "function": function})

    def _say(self, text: str) -> None:
        self._text.append(text)
        self._deltas.add("text", text)

    def _parts(self, parts: JSON) -> None:
        """Content as a list of parts (Mistral)."""
        for part in parts if isinstance(parts, list) else ():
            if not isinstance(part, dict):
                continue
            if isinstance(text := part.get("text"), str) and text:
                self._say(text)
            for thought in part.get("thinking") or ():
                if isinstance(thought, dict) and isinstance(text := thought.get("text"), str) and text:
                    self._thinking.add_text(text)
                    self._deltas.add("thinking", text)

    def _call(self, call: dict[str, JSON]) -> None:
        slot, piece = self._calls.add(call)
        if piece or slot.place not in self._begun:
            self._begun.add(slot.place)
            self._deltas.call(slot.place, slot.id, slot.name, piece)

    # ---- the end

    def finish(self) -> Reply:
        """The whole answer.

        Raises:
            BrokenStreamError: the stream ended without a finish reason or [DONE], or held no choice at all.
            ContentFilterError: a refusal or a filter in place of an answer.
            ModelError: an error in the body.
        """
        try:
            return self._finished()
        except SENSELESS as error:
            why = type(error).__name__
        raise self._senseless(why)

    def _finished(self) -> Reply:
        if self._reads.is_whole:
            self._chunk(self._reads.whole())
            if self._chosen and not self._finish:
                self._finish = "stop"
        else:
            self._take(self._reads.rest())
        if not self.ended:
            raise self._broken("the answer ended without a finish reason")
        if not self._chosen:
            raise self._broken("the answer held no choice")
        return self._reply()

    def _reply(self) -> Reply:
        calls = self._calls.finish()
        text, refusal = scrub("".join(self._text)), scrub("".join(self._refusal))
        finish = self._ending()
        if finish == "content_filter" or (refusal and not calls):
            message = f"the model declined: {refusal}" if refusal else "the answer was stopped by a content filter"
            raise self._source.error(ContentFilterError, message)
        if calls and finish == "stop":
            finish = "tool_calls"
        extra = {"message": self._extra, "calls": self._calls.extras()}
        return Reply(
            content=text or None,
            tool_calls=calls,
            thinking=self._thinking.finish(),
            usage=self._usage,
            finish_reason=finish,
            model=scrub(self._model),
            cost_usd=self._cost,
            opaque={"extra_content": sendable(extra)} if any(extra.values()) else None,
        )

    def _ending(self) -> str:
        """The finish reason in OpenAI's words; what is no good end, known or not, is an error and never a success."""
        if not self._finish:  # [DONE] alone
            return "stop"
        if finish := FINISH.get(self._finish):
            return finish
        kind = FAILED.get(self._finish, BrokenStreamError)
        raise self._source.error(kind, f"the answer ended with {self._finish[:100]!r}")
