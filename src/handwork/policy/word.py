"""One word of the shell's language, and how it is put together while it is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?\+?=", re.ASCII)


class Unreadable(Exception):
    """The text is not understood from here on; how bash reads it is not known."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command.

    text: what the program gets; of a word that is not static the best guess ('' for none).
    static: whether that is known: no expansion makes something else of it.
    glob: whether names of files are all that may come of it, `text` being their pattern.
    plain: whether it was written without quotes, so that a word of the grammar is one.
    assigns: the variable, if the word is an assignment where one may stand.
    """

    text: str
    static: bool = True
    glob: bool = False
    plain: bool = False
    assigns: str = ""


UNKNOWN = Word("", static=False)
"""Any number of words, whatever they may be."""


@dataclass(slots=True)
class Making:
    """A word while it is read."""

    pieces: list[str]
    lead: str = ""
    """What stands before the first quote or expansion."""
    static: bool = True
    glob: bool = False
    bracket: bool = False
    quoted: bool = False
    guessed: bool = True
    brace: bool = False

    def add(self, text: str, *, quoted: bool = False) -> None:
        """Take a piece as it is meant."""
        if quoted:
            self.quoted = True
        elif not self.quoted and self.static:
            self.lead += text
        self.pieces.append(text)

    def unknown(self) -> None:
        """Take a piece that nobody knows."""
        self.static = self.guessed = False

    @property
    def names_array(self) -> bool:
        """Whether all of it is `name=`, so that a list may follow in parentheses."""
        return len(self.pieces) == 1 and self.lead == self.pieces[0] and _ASSIGNED.fullmatch(self.lead) is not None

    def done(self) -> Word:
        """The word that was made."""
        text = "".join(self.pieces)
        assigned = _ASSIGNED.match(self.lead)
        if not self.guessed:
            text = ""
        glob = self.glob or (self.bracket and "]" in text)
        static = self.static and not glob
        return Word(text, static, glob and self.static, not self.quoted and static, assigned[1] if assigned else "")
