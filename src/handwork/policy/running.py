"""Which commands a `run` rule names: strictly where it allows, loosely where it denies or asks."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from handwork.config.policy_rules import Rule
from handwork.policy.exec_flags import exec_flags, names_of, shell_changes
from handwork.policy.match import Match
from handwork.policy.parts import Part
from handwork.policy.taking_data import names_stream, takes_data
from handwork.policy.word import Word

_HARMLESS = re.compile(
    r"LANG|LANGUAGE|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|CLICOLOR(_FORCE)?|COLUMNS|LINES|CI|DEBIAN_FRONTEND|RUST_BACKTRACE|"
    r"PYTHON(UNBUFFERED|DONTWRITEBYTECODE|HASHSEED|UTF8)|SOURCE_DATE_EPOCH|GIT_TERMINAL_PROMPT|GIT_OPTIONAL_LOCKS"
)


def is_harmless(assigned: Word) -> bool:
    """Whether a variable changes nothing but words, colours and times."""
    return assigned.static and "[" not in assigned.text and _HARMLESS.fullmatch(assigned.assigns) is not None


def allows(rule: Rule, part: Part, defined: frozenset[str]) -> bool:
    """Whether a rule that allows names this very command.

    Every word must be known, the program is named as it is written, no variable is set that may matter, no function or alias
    of that name is made beside, and further words (`*`) hold no argument by which a well-known program runs another. What is
    fed to it counts for as much as its words (`sh < x`) unless the program takes it as data.
    """
    if not rule.words:
        return rule.open
    if (part.fed or names_stream(part.words)) and not takes_data(part.words):
        return False
    texts = [word.text for word in part.words]
    fits = texts[: len(rule.words)] == list(rule.words) and (rule.open or len(texts) == len(rule.words))
    if not fits or not all(word.static for word in part.words) or texts[0] in defined:
        return False
    if not all(is_harmless(word) for word in part.assigns):
        return False
    changes = [at for at in shell_changes(part.words) if not is_harmless(part.words[at])]
    return all(at < len(rule.words) for at in (*exec_flags(part.words), *changes))


def run_match(rule: Rule, part: Part) -> Match:
    """How surely a rule that denies or asks names a command."""
    if not rule.words:
        return Match.YES if rule.open else Match.NO
    if not part.words:
        return Match.NO
    first, rest = part.words[0], part.words[1:]
    name = rule.words[0].rpartition("/")[2]
    if not first.static:
        return Match.NO if first.glob and not _may_name(first, name) else Match.MAYBE
    if name not in names_of(first):
        return Match.NO
    return _rest(rule.words[1:], rest) if rule.open else _exactly(rule.words[1:], rest)


def _exactly(wanted: Sequence[str], rest: Sequence[Word]) -> Match:
    if all(word.static for word in rest):
        return Match.YES if [word.text for word in rest] == list(wanted) else Match.NO
    return Match.MAYBE if all(not word.static or word.text in wanted for word in rest) else Match.NO


def _rest(wanted: Sequence[str], rest: Sequence[Word]) -> Match:
    """Whether these words stand there, in whatever order and form options are given."""
    if len(rest) >= len(wanted) and all(
        word.static and word.text == text for word, text in zip(rest, wanted, strict=False)
    ):
        return Match.YES
    flags = [text for text in wanted if _is_flag(text)]
    operands = [text for text in wanted if not _is_flag(text)]
    return min([_operands(operands, rest), *(_flag(flag, rest) for flag in flags)])


def _operands(wanted: Sequence[str], rest: Sequence[Word]) -> Match:
    if not wanted:
        return Match.YES
    if rest and rest[0].static and not _is_flag(rest[0].text) and rest[0].text != wanted[0]:
        return Match.NO
    got = [word for word in rest if not (word.static and _is_flag(word.text))]
    if len(got) >= len(wanted) and all(w.static and w.text == text for w, text in zip(got, wanted, strict=False)):
        return Match.YES
    at = 0
    for word in got:
        if not word.static and (not word.glob or _may_be(word, wanted[at])):
            return Match.MAYBE
        at += word.static and word.text == wanted[at]
        if at == len(wanted):
            return Match.MAYBE  # behind the value of an option, perhaps
    return Match.NO


def _flag(flag: str, rest: Sequence[Word]) -> Match:
    if any(word.static and _gives(word.text, flag) for word in rest):
        return Match.YES
    letters = set(flag[1:]) if not flag.startswith("--") else set[str]()
    short = {letter for word in rest if _is_short(word) for letter in word.text[1:]}
    if letters and letters <= short:
        return Match.YES
    long = {word.text[2:3] for word in rest if word.static and word.text.startswith("--")}
    if letters and letters <= short | long:
        return Match.MAYBE
    return Match.MAYBE if any(not word.static and (not word.glob or _may_be(word, flag)) for word in rest) else Match.NO


def _gives(text: str, flag: str) -> bool:
    """Whether a word is this option, with a value or, if it is a long one, cut short."""
    if text == flag or text.startswith(f"{flag}="):
        return True
    return flag.startswith("--") and len(text) > 3 and text.startswith("--") and flag.startswith(text.partition("=")[0])


def _is_short(word: Word) -> bool:
    return word.static and word.text.startswith("-") and not word.text.startswith("--")


def _is_flag(text: str) -> bool:
    return text.startswith("-") and len(text) > 1


def _may_be(word: Word, text: str) -> bool:
    """Whether a pattern of names of files may give this word."""
    return fnmatch.fnmatchcase(text, word.text)


def _may_name(first: Word, name: str) -> bool:
    """Whether a pattern in a program's place may give one of this name, in whatever folder."""
    return fnmatch.fnmatchcase(name, first.text.rpartition("/")[2])
