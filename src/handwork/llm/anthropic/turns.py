"""A history as turns of Anthropic's Messages API: user and assistant in alternation, each call answered right after its turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from handwork.llm.anthropic.blocks import EMPTY, BlockWriter
from handwork.llm.anthropic.models import MessagesOptions
from handwork.llm.anthropic.thinking import ends_with_own_block
from handwork.schema import Message, Role, Tail, ToolCall

_USER = b'{"role":"user","content":['
_NEXT_USER = b']},{"role":"user","content":['
_NEXT_ASSISTANT = b']},{"role":"assistant","content":['
_CONTINUE = b'{"type":"text","text":"Continue."}'
"""Between two answers, and after the last one: only a user's turn can be answered."""
_MARK = b',"cache_control":{"type":"ephemeral"}}'
_THOUGHTS = (b'{"type":"thinking"', b'{"type":"redacted_thinking"')


class Turns:
    """Takes a history message by message; what was taken never changes by what comes later. `ended` is what can be sent.

    A turn of the user's holds the results of the calls before it, each with its pictures, then everything else that was
    said. Where user turns fold, the last result stays open and takes that in.
    """

    def __init__(self, options: MessagesOptions, writer: BlockWriter) -> None:
        self._writer, self._wire, self._folds = writer, options.wire, options.folds
        self._pieces: list[bytes] = []
        """Joined they are the bytes; each block of a message ends a piece."""
        self._marks: list[int] = []
        """Pieces at whose ends a request may be cached: for each turn of the user's the last block that never changes."""
        self._turn: list[Message] = []
        self._calls: tuple[tuple[ToolCall, ToolCall], ...] = ()
        """The calls before the present turn, each as it stands in the history and as it was written."""
        self._ids: set[str] = set()
        self._before: Role | None = None
        self._open = False
        self._markable = False
        """Whether the present assistant turn ends with a block that may be marked."""
        self._fresh = True
        self.thought = True
        """Whether the present run of calls and results began with a thought, or none has begun."""
        self.called: set[str] = set()
        """The names of the tools that were called."""

    def add(self, message: Message) -> None:
        if message.role is not Role.ASSISTANT:
            self._turn.append(message)
        elif blocks := self._kept(message, self._wire, self._writer.assistant):
            self._end_turn()
            calls = self._distinct(message.tool_calls)
            if calls != message.tool_calls:
                blocks = self._writer.assistant(replace(message, tool_calls=calls))
            self._answer(message, blocks)
            self._calls = tuple(zip(message.tool_calls, calls, strict=True))

    def ended(self, turn: Iterable[Message]) -> Turns:
        """A copy for one request, with these messages of the user's as its last turn; this one can take more."""
        copied = copy(self)
        copied._pieces, copied._marks = self._pieces.copy(), self._marks.copy()
        copied._turn = [*self._turn, *turn]
        copied._end_turn()
        return copied

    def stored(self) -> list[bytes]:
        """The pieces of an ended copy, marked for the cache where this request and the one before it end."""
        for at in set(self._marks[-2:]):
            self._pieces[at] = self._pieces[at][:-1] + _MARK
        self._marks.clear()
        return self._pieces

    def ending(self, tail: Tail | None) -> bytes:
        """What comes after the stored part up to the end of the list of messages."""
        said = b""
        if tail is not None and (tail.text.strip() or tail.images):
            said = self._writer.said(Message(role=Role.USER, content=tail.text, images=tail.images))
        if self._before is Role.USER:
            return (b"," + said if said else b"") + (b"]}]}" if self._open else b"]}")
        return self._opening() + (said or _CONTINUE) + b"]}"

    # ---- assistant turns

    def _answer(self, message: Message, blocks: bytes) -> None:
        if self._before is not Role.USER:  # the first turn must be the user's, and so must each second one
            self._user_turn(EMPTY if self._before is None else _CONTINUE)
        if self._fresh:
            self.thought, self._fresh = blocks.startswith(_THOUGHTS), False
        self._pieces += (b"]}" + _NEXT_ASSISTANT if self._open else _NEXT_ASSISTANT, blocks)
        self._open = False
        self._before = Role.ASSISTANT
        self.called.update(call.function.name for call in message.tool_calls)
        self._markable = not ends_with_own_block(message)

    def _distinct(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        """The calls with ids that no call before them has: other providers count anew in every answer."""
        distinct = []
        for call in calls:
            id, number = call.id, 2
            while id in self._ids:
                id, number = f"{call.id}_{number}", number + 1
            self._ids.add(id)
            distinct.append(call if id == call.id else replace(call, id=id))
        return tuple(distinct)

    def _user_turn(self, *blocks: bytes) -> None:
        for place, block in enumerate(blocks):
            self._pieces += (self._opening() if not place else b",", block)
        self._before = Role.USER
        self._fresh = self.thought = True
        self._marks.append(len(self._pieces) - 1)

    def _opening(self) -> bytes:
        return _USER if self._before is None else _NEXT_USER

    # ---- user turns

    def _end_turn(self) -> None:
        turn, calls = self._turn, self._calls
        if not calls:
            if turn:
                self._user_turn(*[self._words(message) for message in turn])
        else:
            self._results(_answers(turn, calls))
        self._turn, self._calls = [], ()

    def _results(self, answers: _Answers) -> None:
        pieces, before = self._pieces, b","
        if self._folds and len(answers.results) == 1 and self._markable:
            self._marks.append(len(pieces) - 1)  # the call itself is the last block that stays as it is
        pieces.append(self._opening())
        for place, answer in enumerate(answers.results):
            if place:
                pieces.append(before)
            pieces.append(self._result(*answer))
        self._open, self._before = self._folds, Role.USER
        if self._folds:
            if len(answers.results) > 1:
                self._marks.append(len(pieces) - 3)
            pieces[-1] = pieces[-1][:-2]
        for message in answers.words:
            pieces += (before, self._words(message))
        if not self._folds:
            self._marks.append(len(pieces) - 1)

    def _result(self, call: ToolCall, result: Message | None, pictures: list[Message]) -> bytes:
        if result is None:
            return self._writer.unanswered(call) + b"]}"
        if result.tool_call_id != call.id:
            return self._writer.opened(replace(result, tool_call_id=call.id), pictures) + b"]}"
        wire = (self._wire, *pictures) if pictures else self._wire
        return self._kept(result, wire, lambda message: self._writer.opened(message, pictures) + b"]}")

    def _words(self, message: Message) -> bytes:
        if message.role is Role.TOOL:
            return self._kept(message, self._wire + "?", self._writer.orphan)
        return self._kept(message, self._wire, self._writer.said)

    @staticmethod
    def _kept(message: Message, wire: object, write: Callable[[Message], bytes]) -> bytes:
        encoded = message.encoded
        if encoded and encoded[0] == wire:
            found: bytes = encoded[1]
            return found
        written = write(message)
        object.__setattr__(message, "encoded", (wire, written))
        return written


@dataclass(slots=True)
class _Answers:
    """The messages of a user's turn after calls: for each call its result (None: there is none) and pictures, and the rest."""

    results: list[tuple[ToolCall, Message | None, list[Message]]] = field(default_factory=list)
    words: list[Message] = field(default_factory=list)


def _answers(turn: Sequence[Message], calls: Sequence[tuple[ToolCall, ToolCall]]) -> _Answers:
    found: dict[str, list[Message]] = {call.id: [] for call, _ in calls}
    pictures: dict[str, list[Message]] = {call.id: [] for call, _ in calls}
    asked = Counter(call.id for call, _ in calls)
    answers = _Answers()
    for message in turn:
        id, is_result = message.tool_call_id or "", message.role is Role.TOOL
        if is_result and len(found.get(id, ())) < asked[id]:
            found[id].append(message)
        elif message.tool_call_id in asked and not is_result:
            pictures[id].append(message)
        else:
            answers.words.append(message)
    for call, written in calls:
        result = found[call.id].pop(0) if found[call.id] else None
        answers.results.append((written, result, pictures.pop(call.id, [])))
    return answers
