"""Which commands of a text may get their standard input from something in it: a pipe, a file, a document."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from handwork.policy.parts import Part
from handwork.policy.word import Unreadable


@dataclass(slots=True)
class Feeding:
    """Follows the commands while they are read: what feeds a compound command feeds every command in it.

    parts: what was found so far, of which those that are fed are replaced.
    """

    parts: list[Part]
    fed: bool = False
    """Whether the command that is read now is fed."""
    _begin: int = 0
    _outer: list[tuple[int, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begin = len(self.parts)

    @property
    def open(self) -> bool:
        """Whether a compound command has not ended."""
        return bool(self._outer)

    def enter(self) -> None:
        """A compound command begins."""
        self._outer.append((self._begin, self.fed))
        self._begin, self.fed = len(self.parts), False

    def leave(self) -> None:
        """It has ended; what follows, up to `end`, still feeds it."""
        if not self._outer:
            raise Unreadable
        self._begin, self.fed = self._outer.pop()

    def end(self) -> None:
        """A command has ended, simple or compound. Substitutions in its words read what it reads."""
        if self.fed:
            self.mark(self._begin)
        self._begin, self.fed = len(self.parts), False

    def mark(self, begin: int) -> None:
        """All that was found from there on is fed."""
        self.parts[begin:] = [replace(part, fed=True) for part in self.parts[begin:]]
