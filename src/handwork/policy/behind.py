"""The command behind another one's own words, and the text that words make for a shell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from handwork.policy.commands import parse
from handwork.policy.parts import Part, Script
from handwork.policy.word import UNKNOWN, Word

ANYTHING = Script((Part((UNKNOWN,)),))
"""A command that nobody knows before it runs."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)


@dataclass(frozen=True, slots=True)
class Inner:
    """What a command runs: `at` is the place of the word with which that begins."""

    at: int
    script: Script


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How the words before the inner command are told from it.

    valued: letters of options that take the next word, if nothing else is in theirs.
    named: the same of long options.
    operands: words before the command. assigns: whether NAME=value may stand there.
    joined: the words become one text that a shell reads. more: further words follow that nobody knows.
    """

    valued: str = ""
    named: tuple[str, ...] = ()
    operands: int = 0
    assigns: bool = False
    joined: bool = False
    more: bool = False


def behind(words: Sequence[Word], at: int, wrapper: Wrapper) -> list[Inner]:
    """The command behind a wrapper's own words, which begin at `at`."""
    operands = wrapper.operands
    while at < len(words):
        word = words[at]
        if not word.static:
            break  # an option, its value or the command itself: nobody knows
        if word.text == "--":
            at += 1
            if not operands:
                break
        elif word.text.startswith("-") and (len(word.text) > 1 or wrapper.assigns):  # `env -` is `env -i`
            at += 2 if _takes_next(word.text, wrapper) else 1
        elif wrapper.assigns and _ASSIGNMENT.match(word.text):
            at += 1
        elif operands:
            operands, at = operands - 1, at + 1
        else:
            break
    if at >= len(words):
        return []
    rest = words[at:]
    more = [UNKNOWN] if wrapper.more else []
    if wrapper.joined:
        return [Inner(at, joined(rest, more))]
    if not rest[0].static:
        return [Inner(at, ANYTHING)]
    return [Inner(at, Script((Part((*rest, *more)),)))]


def _takes_next(option: str, wrapper: Wrapper) -> bool:
    if option.startswith("--"):
        return option in wrapper.named
    return option[-1] in wrapper.valued and not any(letter in wrapper.valued for letter in option[1:-1])


def joined(words: Sequence[Word], more: Sequence[Word]) -> Script:
    """The script that words make when a shell reads them as one text."""
    if not all(word.static for word in words):
        known = parse(" ".join(word.text for word in words))
        return Script((*known.parts, *ANYTHING.parts), known.accesses, known.whole, known.defined)
    script = parse(" ".join(word.text for word in words))
    if more and script.parts:
        *before, last = script.parts
        script = Script(
            (*before, Part((*last.words, *more), last.assigns)), script.accesses, script.whole, script.defined
        )
    return script


def text_of(word: Word) -> Script:
    """The script that a word is."""
    return parse(word.text) if word.static else ANYTHING
