"""What the rules say of a text for a shell: each command in it, what those run in turn, and what it opens."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from handwork.policy.commands import parse
from handwork.policy.exec_flags import program_of
from handwork.policy.parts import Access, Part, Script
from handwork.policy.units import Command, Deed, Host, Path, Unread
from handwork.policy.word import Word
from handwork.policy.wrappers import inner_commands

_DEEPEST = 10
"""Levels of commands in commands that are looked through."""
_MOST_WORDS = 10_000
"""Words that are looked at, each as often as a command holds it."""
_READERS = frozenset(
    [
        *(
            "cat",
            "ls",
            "head",
            "tail",
            "grep",
            "egrep",
            "fgrep",
            "rg",
            "wc",
            "diff",
            "cmp",
            "stat",
            "file",
            "test",
            "[",
        ),
        *(
            "du",
            "cd",
            "pushd",
            "cut",
            "od",
            "md5sum",
            "sha256sum",
            "realpath",
            "readlink",
            "echo",
            "printf",
            "basename",
        ),
        *("dirname", "nl", "tac", "strings", "jq"),
    ]
)
"""Programs whose words name what they read, and nothing that they write."""
_WHOLE_FOLDERS = frozenset(["rm", "mv", "chmod", "chown", "chgrp", "shred", "rsync", "find", "cp", "tar", "zip"])


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a text for a shell does, and what it makes run besides.

    inner: the commands behind it, with the place in its words where each begins (-1: it only has to be looked at).
    """

    deed: Deed
    inner: tuple[tuple[int, tuple[Step, ...]], ...] = field(default=())


def steps(text: str, real: Mapping[str, str]) -> tuple[Step, ...]:
    """What a text for a shell does.

    Args:
        text: the whole of it.
        real: the real paths of what redirections open, by how they are written.
    """
    return tuple(_Look(real).into(parse(text), 0))


def opened(text: str) -> Iterator[str]:
    """The paths that redirections in a text open, as they are written, as far as they are known."""
    for access in parse(text).accesses:
        if access.kind != "network" and access.word.static:
            yield access.word.text


@dataclass
class _Look:
    """One look through a text, which ends where it would take too long."""

    real: Mapping[str, str]
    left: int = _MOST_WORDS

    def into(self, script: Script, depth: int) -> Iterator[Step]:
        """What a script does."""
        whole = script.whole and depth <= _DEEPEST
        for part in script.parts:
            self.left -= 1 + len(part.words)
            if self.left < 0:
                whole = False
                break
            yield Step(Command(part, script.defined), tuple(self._within(part, depth)) if depth <= _DEEPEST else ())
        for access in script.accesses:
            yield Step(_opening(access, self.real))
        if not whole:
            yield Step(Unread())

    def _within(self, part: Part, depth: int) -> Iterator[tuple[int, tuple[Step, ...]]]:
        inner = inner_commands(part)
        for each in inner:
            yield each.at, tuple(self.into(each.script, depth + 1))
        own = min((each.at for each in inner), default=len(part.words))
        if named := tuple(Step(deed) for deed in _named(part.words[:own])):
            yield -1, named


def _named(words: Sequence[Word]) -> Iterator[Deed]:
    """Paths in the words of a command: it may read them, and change them if it does more than read."""
    if len(words) < 2 or not words[0].static:
        return
    program = program_of(words[0])
    for word in words[1:]:
        for text in _paths_in(word):
            yield Path("read", text, guess=True)
            if program not in _READERS:
                yield Path("write", text, guess=True, whole=program in _WHOLE_FOLDERS)


def _paths_in(word: Word) -> Iterator[str]:
    if (word.static or word.text.startswith("~/")) and 0 < len(word.text) <= 4096 and "\n" not in word.text:
        yield word.text
        behind = word.text.rpartition("=")[2]
        if behind and behind != word.text:
            yield behind


def _opening(access: Access, real: Mapping[str, str]) -> Deed:
    word = access.word
    if access.kind == "network":
        return Host(word.text if word.static else "*")
    text = word.text if word.text and (word.static or word.text.startswith("~/")) else "*"
    lost = text == "*" or (access.moved and not posixpath.isabs(text))
    known = real.get(text, "") if word.static and posixpath.isabs(text) else ""
    return Path(access.kind, text if lost else real.get(text, text), sure=bool(known), lost=lost)
