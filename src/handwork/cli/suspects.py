"""Letters and marks that pass for others in what is going to run: spelt out where they stand, and named once."""

from __future__ import annotations

import re

from handwork.tool.lookalikes import described, skeleton

_TOKEN = re.compile(r"[^\s⟨⟩]*[^\x00-\x7f\s⟨⟩][^\s⟨⟩]*")
_WORD = re.compile(r"[^\W\d_]+")
_QUOTES = "\"'`"
_PILED = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
"""Marks that are drawn over the character before them."""
_STRIKES = re.compile("[\u0334-\u0338\u20d2-\u20e3]")
_NAMED = 5


class Suspects:
    """Marks texts and keeps what it has found. `script` is all that is shown together: honest words of a script also have
    letters that look like no other."""

    def __init__(self, script: str) -> None:
        self._honest = any(_has_own_letters(word) for word in _WORD.findall(script) if not word.isascii())
        self._found: dict[str, str] = {}

    def marked(self, text: str) -> str:
        """The text with each character that passes for another one as ⟨U+0430⟩."""
        if text.isascii():
            return text
        return _TOKEN.sub(lambda token: self._token(token[0]), text)

    @property
    def note(self) -> str:
        """What was found, in a sentence; '' if nothing."""
        if not self._found:
            return ""
        named = [f"{described(char)} in {where}" for char, where in self._found.items()]
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        return f"Not what it looks like: {', '.join(named[:_NAMED])}{more}"

    def _token(self, token: str) -> str:
        places = {*self._letters(token), *_signs(token), *_piles(token)}
        if not places:
            return token
        shown = "".join(_spelt(char) if at in places else char for at, char in enumerate(token))
        for at in sorted(places):
            self._found.setdefault(token[at], shown[:80])
        return shown

    def _letters(self, token: str) -> list[int]:
        """Letters that look like ASCII in a word that has ASCII letters, or none but such."""
        found = []
        for word in _WORD.finditer(token):
            alike = [at for at in range(*word.span()) if not token[at].isascii() and _passes(token[at])]
            mixed = any(char.isascii() for char in word[0])
            if alike and (mixed or (len(alike) == len(word[0]) and not self._honest)):
                found += alike
        return found


def _signs(token: str) -> list[int]:
    """Marks that look like ASCII ones beside ASCII letters: a slash, a semicolon; a dash only where it would begin an option."""
    found = []
    for at, char in enumerate(token):
        if char.isascii() or char.isalpha() or not _passes(char):
            continue
        plain = skeleton(char)
        before, behind = token[at - 1 : at], token[at + 1 : at + 2]
        beside = _is_word(before) or _is_word(behind)
        if plain == "-":
            beside = not _is_word(before) and (_is_word(behind) or skeleton(behind) == "-")
        if beside and len(plain) == 1 and plain not in _QUOTES:
            found.append(at)
    return found


def _piles(token: str) -> list[int]:
    """Marks that strike a character out, stand on one that is no letter, or stand on each other."""
    found: list[int] = []
    for pile in _PILED.finditer(token):
        base = token[pile.start() - 1 : pile.start()]
        odd = len(pile[0]) > 3 or not base.isalpha() or _STRIKES.search(pile[0])
        found += range(*pile.span()) if odd else ()
    return found


def _passes(char: str) -> bool:
    plain = skeleton(char)
    return bool(plain.strip()) and plain.isascii()


def _has_own_letters(word: str) -> bool:
    return not any(char.isascii() for char in word) and not all(map(_passes, word))


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char in tuple("/._~$"))


def _spelt(char: str) -> str:
    return f"⟨U+{ord(char):04X}⟩"
