"""What is said to an agent while it works: words that wait until the history can take them."""

from __future__ import annotations

from handwork.agent.history import open_at_end
from handwork.agent.run import Run
from handwork.schema import Memory, Message, scrub


class Steering:
    """Words of the human that the model has not read yet, in order."""

    def __init__(self) -> None:
        self._waiting: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def say(self, text: str) -> None:
        """Let a text wait; one that says nothing is ignored."""
        if text.strip():
            self._waiting.append(scrub(text))

    def take_back(self) -> list[str]:
        """What waits, which then waits no longer."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def read_into(self, memory: Memory, run: Run) -> None:
        """At the beginning of a step: each text becomes a user message, and the run is counted as going somewhere new.

        While the newest calls have no result the words go on waiting: nothing may stand between a call and its result.
        """
        if not self._waiting:
            return
        if open_at_end(memory.messages) is not None:
            return
        memory.add_messages([Message.user_message(run.session.said(text)) for text in self.take_back()])
        run.start_counting_anew()
