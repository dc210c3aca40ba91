"""What was sent and nobody has read yet: what waits for its turn, and what the agent was told while it works."""

from __future__ import annotations

from contextlib import suppress


class Unread:
    """`typed` is all of it, as the human sent it."""

    def __init__(self) -> None:
        self.typed: list[str] = []
        self._told: list[tuple[str, str]] = []
        """What the agent was told and has not read: in its words, and as it was typed."""

    def wait(self, typed: str) -> None:
        """Something waits for its turn."""
        self.typed.append(typed)

    def tell(self, told: str, typed: str) -> None:
        """The agent was told something: in these words, of what was typed."""
        self._told.append((told, typed))
        self.typed.append(typed)

    def taken(self, typed: str) -> None:
        """The turn of something has come; it waits no longer, if it did."""
        with suppress(ValueError):
            self.typed.remove(typed)

    def __contains__(self, told: object) -> bool:
        """Whether these are words that the agent was told and has not read."""
        return any(words == told for words, _ in self._told)

    def read(self, told: str) -> str:
        """What was typed of words that the agent was told: it has them now, and they wait no longer."""
        for words, typed in self._told:
            if words == told:
                self._told.remove((words, typed))
                self.taken(typed)
                return typed
        return told
