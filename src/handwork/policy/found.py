"""What is found while a text for a shell is read, up to what can be looked at."""

from __future__ import annotations

from dataclasses import dataclass, field

from handwork.policy.parts import Access, Part
from handwork.policy.word import Unreadable

MOST, _MOST_WORDS = 1_000, 5_000
"""Commands, and words of them, that are looked at; more are not understood."""


@dataclass(slots=True)
class Found:
    """See the module; `moved`: a command may have changed the current folder."""

    parts: list[Part] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    moved: bool = False
    words: int = 0

    def add(self, part: Part) -> None:
        """Take a command. Raises Unreadable for one too many."""
        self.parts.append(part)
        self.words += len(part.words) + len(part.assigns)
        if len(self.parts) > MOST or self.words > _MOST_WORDS:
            raise Unreadable
