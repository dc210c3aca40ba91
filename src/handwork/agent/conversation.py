"""An agent's memory beside what its session's journal replays to: the two are kept the same."""

from __future__ import annotations

from handwork import events as ev
from handwork.agent.run import Run
from handwork.schema import Memory, Message
from handwork.store.past import Past


class Conversation:
    """Which past an agent's memory continues, and how far it knows it."""

    def __init__(self) -> None:
        self.past: Past | None = None
        self._session_id = ""
        self._generation = 0
        self._memory: Memory | None = None
        self._retold = self._pending = False

    def adopt(self, memory: Memory, past: Past) -> None:
        """Make memory what the journal replays to, and behind it what the journal does not know yet.

        A memory that was rewritten, or exchanged for another, stays as it is: `tell` then says that it counts.
        """
        same = self._session_id == past.session_id
        known, at_hand = (self._generation, memory.journaled), (past.generation, len(past.messages))
        if same and self._rewritten(memory):
            self._take(past)
            return
        if same and past is self.past and known == at_hand:
            return
        shared = _common(memory.messages, past.messages)
        ours = memory.journaled if same and past is self.past else shared
        self._take(past)
        self._memory = memory
        if shared < len(past.messages) or ours > shared:
            memory.messages = [*past.messages, *memory.messages[ours:]]
        memory.mark(len(past.messages))

    def tell(self, run: Run, memory: Memory) -> None:
        """Emit what memory holds and the journal does not."""
        if run.closed:
            return
        if self._rewritten(memory):
            run.emit(ev.MemoryCleared())
            self._generation, self._retold, self._pending = run.session.past.generation, True, False
            memory.mark(0)
        self._memory = memory
        while memory.journaled < len(memory.messages):
            message = memory.messages[memory.journaled]
            run.session.keep_images(message.images)
            run.emit(ev.MessageAdded(message=message))
            memory.mark(memory.journaled + 1)

    def settled(self, *, intact: bool) -> None:
        """The session is closed; not intact means that what was told since it opened may not be on disk."""
        if not intact:
            self.past, self._pending = None, self._retold
        self._retold = False

    def _rewritten(self, memory: Memory) -> bool:
        return self._pending or memory.rewritten or (self._memory is not None and memory is not self._memory)

    def _take(self, past: Past) -> None:
        self.past, self._session_id, self._generation = past, past.session_id, past.generation


def _common(ours: list[Message], theirs: list[Message]) -> int:
    """How many messages the two begin with together."""
    count = 0
    for mine, its in zip(ours, theirs, strict=False):
        if mine != its:
            break
        count += 1
    return count
