"""An agent's memory beside what its session's journal replays to: the two are kept the same."""

from __future__ import annotations

from handwork import events as ev
from handwork.agent.run import Run
from handwork.schema import Memory
from handwork.store.past import Past


class Conversation:
    """Which past an agent's memory continues, and how far it knows it."""

    def __init__(self) -> None:
        self.past: Past | None = None
        self._generation = 0

    def adopt(self, memory: Memory, past: Past) -> None:
        """Make memory what the journal replays to, and behind it what the journal does not know yet."""
        if past is not self.past:
            self.past, self._generation = past, past.generation
            known = len(past.messages)
            if memory.messages[:known] == past.messages:  # our own, read anew
                memory.mark(known)
                return
            memory.mark(0)
        elif memory.rewritten or (self._generation, memory.journaled) == (past.generation, len(past.messages)):
            return
        self._generation = past.generation
        memory.messages = [*past.messages, *memory.messages[memory.journaled :]]
        memory.mark(len(past.messages))

    def tell(self, run: Run, memory: Memory) -> None:
        """Emit what memory holds and the journal does not."""
        if run.closed or (memory.journaled == len(memory.messages) and not memory.rewritten):
            return
        start = memory.journaled
        if memory.rewritten:
            run.emit(ev.MemoryCleared())
            self._generation = run.session.past.generation
            start = 0
        new = memory.messages[start:]
        memory.mark()
        for message in new:
            run.session.keep_images(message.images)
            run.emit(ev.MessageAdded(message=message))
