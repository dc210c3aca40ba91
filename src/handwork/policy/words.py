"""Words of the shell's language: what the quotes make of a word, and which commands are substituted in it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from handwork.policy.ansi_c import decoded
from handwork.policy.expansions import evaluates, is_plain_arithmetic
from handwork.policy.word import Making, Unreadable, Word

_RUN = re.compile(r"[^ \t\n|&;()<>'\"\\$`*?\[{]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SPECIAL = frozenset("@*#?-$!")
_META = frozenset(" \t\n|&;()<>")
_EXTENDED = frozenset("?*+@!")
_DEEPEST = 30
"""Levels of substitutions that are followed; a person writes three."""


class Words(ABC):
    """Reads words from a text at `at`; whatever is substituted in them goes to `commands`."""

    def __init__(self, text: str, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise Unreadable
        self.text, self.at, self.depth = text, 0, depth

    @abstractmethod
    def commands(self, closing: str, *, fed: bool = False) -> None:
        """Read commands up to the sign that closes them; `fed`: something writes to them."""

    @abstractmethod
    def inner(self, text: str) -> None:
        """Read commands that stand in a text of their own."""

    @abstractmethod
    def evaluated(self) -> None:
        """Take an expansion that evaluates what a variable holds."""

    def peek(self, offset: int = 0) -> str:
        """The sign that comes next, '' at the end."""
        at = self.at + offset
        return self.text[at] if at < len(self.text) else ""

    def skip_blanks(self) -> None:
        """Go over spaces and continued lines."""
        text, at = self.text, self.at
        while at < len(text):
            if text[at] in " \t":
                at += 1
            elif text.startswith("\\\n", at):
                at += 2
            else:
                break
        self.at = at

    def word(self) -> Word:
        """Read the word that begins here. Raises Unreadable if none does."""
        made, begin = Making([]), self.at
        while (sign := self.peek()) and self._piece(made, sign):
            pass
        if self.at == begin:
            raise Unreadable
        return made.done()

    def _piece(self, made: Making, sign: str) -> bool:
        """Read on; whether the word may go on then."""
        if sign in _META:
            return self._at_operator(made, sign)
        if sign in "'\"\\":
            self._quoted(made, sign)
        elif sign == "$":
            self._dollar(made)
        elif sign == "`":
            self._backticks(made, quoted=False)
        elif found := _RUN.match(self.text, self.at):
            self._run(made, found[0])
        else:
            self._pattern(made, sign)
        return True

    def _at_operator(self, made: Making, sign: str) -> bool:
        if sign in "<>" and self.peek(1) == "(":
            self.at += 2
            made.unknown()
            self._nested(")", fed=sign == ">")
            return True
        if sign == "(" and made.names_array:
            self._array()
            made.unknown()
            return False
        if sign == "(" and made.pieces and made.pieces[-1][-1:] in _EXTENDED:
            raise Unreadable
        return False

    def _run(self, made: Making, text: str) -> None:
        before = made.pieces[-1][-1:] if made.pieces else ""
        if (text[0] == "~" and before in ("", "=", ":")) or "=~" in text or (":~" in text and "=" in made.lead + text):
            made.static = False  # a home folder: the text stays as the guess
        if made.brace and ("," in text or ".." in text):
            made.unknown()
        made.add(text)
        self.at += len(text)

    def _pattern(self, made: Making, sign: str) -> None:
        self.at += 1
        made.brace = made.brace or sign == "{"
        made.bracket = made.bracket or sign == "["
        made.glob = made.glob or sign in "*?"
        if sign == "[" and _NAME.fullmatch(made.lead):
            self._subscript()
        made.add(sign)

    def _subscript(self) -> None:
        """`name[…]=` takes blanks and quotes between its brackets: only a simple one is understood."""
        found = re.compile(r"[^\]\s'\"\\|&;()<>`]*\]").match(self.text, self.at)
        if not found:
            raise Unreadable

    def _quoted(self, made: Making, sign: str) -> None:
        if sign == "\\":
            if self.peek(1) == "\n":
                self.at += 2
                return
            made.add(self.peek(1) or "\\", quoted=True)
            self.at += 2
        elif sign == '"':
            self.at += 1
            self._double(made, '"')
        else:
            end = self.text.find("'", self.at + 1)
            if end < 0:
                raise Unreadable
            made.add(self.text[self.at + 1 : end], quoted=True)
            self.at = end + 1

    def _double(self, made: Making, closing: str) -> None:
        """What stands between double quotes; with closing '' the body of a here-document."""
        made.quoted = True
        while sign := self.peek():
            if found := _IN_QUOTES.match(self.text, self.at):
                made.add(found[0], quoted=True)
                self.at = found.end()
            elif sign == closing:
                self.at += 1
                return
            elif sign == "$":
                self._dollar(made, quoted=True)
            elif sign == "`":
                self._backticks(made, quoted=bool(closing))
            elif sign == "\\" and self.peek(1) in ("$", "`", "\\", "\n", closing or "\\"):
                made.add("" if self.peek(1) == "\n" else self.peek(1), quoted=True)
                self.at += 2
            else:
                made.add(sign, quoted=True)
                self.at += 1
        if closing:
            raise Unreadable

    def scan(self) -> None:
        """Read a here-document's body, for what is substituted in it."""
        self._double(Making([]), "")

    def _dollar(self, made: Making, *, quoted: bool = False) -> None:
        following = self.peek(1)
        if following == "'" and not quoted:
            self._ansi(made)
        elif following == '"' and not quoted:
            self.at += 2
            self._double(made, '"')
            made.unknown()  # a translation may stand in its place
        elif following == "(":
            made.unknown()
            self._substitution()
        elif following == "{":
            made.unknown()
            self.at += 2
            self._parameter(quoted=quoted)
        elif following == "[":
            raise Unreadable
        elif found := _NAME.match(self.text, self.at + 1):
            made.unknown()
            self.at = found.end()
        elif following and (following in _SPECIAL or following.isdigit()):
            made.unknown()
            self.at += 2
        else:
            made.add("$", quoted=quoted)
            self.at += 1

    def _ansi(self, made: Making) -> None:
        found = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.at)
        if not found:
            raise Unreadable
        text = decoded(found[1])
        made.add(text or "", quoted=True)
        if text is None:
            made.unknown()
        self.at = found.end()

    def _substitution(self) -> None:
        if self.peek(2) == "(":
            self.at += 1
            self.arithmetic()
        else:
            self.at += 2
            self._nested(")")

    def _nested(self, closing: str, *, fed: bool = False) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unreadable
        self.commands(closing, fed=fed)
        self.depth -= 1

    def arithmetic(self) -> None:
        """Read `((…))`. What may be two subshells as well is not understood."""
        begin = self.at
        self._balanced()
        if not is_plain_arithmetic(self.text[begin : self.at]):
            self.evaluated()

    def _balanced(self) -> None:
        level = 0
        while sign := self.peek():
            if sign == "$":
                self._dollar(Making([]), quoted=True)
                continue
            if sign == "`":
                self._backticks(Making([]), quoted=False)
                continue
            if sign in "'\"\\":
                break
            level += (sign == "(") - (sign == ")")
            self.at += 1
            if level == 1 and sign == ")":
                if self.peek() != ")":
                    break
                self.at += 1
                return
        raise Unreadable

    def _backticks(self, made: Making, *, quoted: bool) -> None:
        made.unknown()
        found = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL).match(self.text, self.at)
        if not found:
            raise Unreadable
        self.at = found.end()
        self.inner(re.sub(r"\\([`\\$\"])" if quoted else r"\\([`\\$])", r"\1", found[1]))

    def _parameter(self, *, quoted: bool) -> None:
        """Go over `${…}`, for what is substituted in it."""
        if self.peek() in (" ", "\t", "\n", "|", "(", ""):
            raise Unreadable  # bash 5.3 runs what stands there
        made, begin = Making([]), self.at
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unreadable
        while sign := self.peek():
            if sign == "}":
                if evaluates(self.text[begin : self.at]):
                    self.evaluated()
                self.at += 1
                self.depth -= 1
                return
            if sign == "$":
                self._dollar(made, quoted=quoted)
            elif sign == "`":
                self._backticks(made, quoted=quoted)
            elif sign == "'" and quoted:
                break  # a quote in some of the forms, and none in others
            elif sign in "'\"\\":
                self._quoted(made, sign)
            elif sign in "<>" and self.peek(1) == "(":
                break
            else:
                self.at += 1
        raise Unreadable

    def _array(self) -> None:
        """Read `(…)` behind `name=`."""
        self.at += 1
        while True:
            self.skip_blanks()
            sign = self.peek()
            if sign == ")":
                self.at += 1
                return
            if sign == "\n":
                self.at += 1
            elif sign == "#" or not sign:
                raise Unreadable
            else:
                self.word()
