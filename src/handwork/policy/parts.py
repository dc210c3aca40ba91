"""What a text for a shell holds: commands, and what its redirections open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from handwork.policy.word import Word


@dataclass(frozen=True, slots=True)
class Part:
    """One command: its words, and the variables that are set for it alone (or, without a word, for the shell).

    fed: whether a redirection, a document or a pipe may give it something to read, or a function that holds it is called so.
    """

    words: tuple[Word, ...]
    assigns: tuple[Word, ...] = ()
    fed: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """What a redirection opens. `word` is a path (of `network`: host:port), `moved`: the folder it is relative to is not known."""

    kind: Literal["read", "write", "network"]
    word: Word
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """What was found. `whole` says that all of the text was understood; `defined` are names that it makes functions or aliases."""

    parts: tuple[Part, ...]
    accesses: tuple[Access, ...] = ()
    whole: bool = True
    defined: frozenset[str] = frozenset()
