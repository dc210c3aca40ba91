"""What the rules say of a text for a shell: each command in it, what those run in turn, and what it opens."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from handwork.policy.commands import parse
from handwork.policy.exec_flags import program_of
from handwork.policy.parts import Access, Part, Script
from handwork.policy.units import Command, Deed, Host, Path, Unread
from handwork.policy.word import Word
from handwork.policy.wrappers import inner_commands

_DEEPEST = 10
"""Levels of commands in commands that are looked through."""
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
    return tuple(_steps(parse(text), real, 0))


def opened(text: str) -> Iterator[str]:
    """The paths that redirections in a text open, as they are written, as far as they are known."""
    for access in parse(text).accesses:
        if access.kind != "network" and access.word.static:
            yield access.word.text


def _steps(script: Script, real: Mapping[str, str], depth: int) -> Iterator[Step]:
    if not script.whole or depth > _DEEPEST:
        yield Step(Unread())
    for part in script.parts:
        if part.words or part.assigns:
            yield Step(Command(part, script.defined), tuple(_within(part, real, depth)) if depth <= _DEEPEST else ())
    for access in script.accesses:
        yield Step(_opening(access, real))


def _within(part: Part, real: Mapping[str, str], depth: int) -> Iterator[tuple[int, tuple[Step, ...]]]:
    for inner in inner_commands(part):
        yield inner.at, tuple(_steps(inner.script, real, depth + 1))
    if named := tuple(Step(deed) for deed in _named(part)):
        yield -1, named


def _named(part: Part) -> Iterator[Deed]:
    """Paths in the words of a command: it may read them, and change them if it does more than read."""
    if not part.words or not part.words[0].static:
        return
    program = program_of(part.words[0])
    for word in part.words[1:]:
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
    return Path(access.kind, real.get(text, text), sure=bool(known), lost=lost)
