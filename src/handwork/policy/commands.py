"""The commands in a text of the shell's language: every part that may run, found without running anything."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from handwork.policy.feeding import Feeding
from handwork.policy.found import Found
from handwork.policy.parts import Part, Script
from handwork.policy.redirections import REDIRECTION, Redirections
from handwork.policy.word import Unreadable, Word

_LONGEST = 1_000_000
_REMEMBERED = 20_000
_OPERATORS = re.compile(r";;&|;;|;&|;|&&|\|\||\|&|\||&(?!>)")
_GO_ON = frozenset(["if", "then", "elif", "else", "do", "while", "until", "!", "{", "time"])
"""Words behind which another command begins."""
_OPEN = frozenset(["if", "while", "until", "{", "for", "select", "case"])
_CLOSE = frozenset(["fi", "done", "esac", "}"])
_MOVE = frozenset(["cd", "pushd", "popd"])


def parse(text: str) -> Script:
    """Find the commands; never raises. A text that is not understood gives what was found before, and is not `whole`."""
    return _remembered(text) if len(text) <= _REMEMBERED else _parsed(text)


def _parsed(text: str) -> Script:
    found, whole = Found(), len(text) <= _LONGEST
    try:
        if whole:
            _Reader(text, found).read()
    except (Unreadable, RecursionError):
        whole = False
    return Script(tuple(found.parts), tuple(found.accesses), whole, frozenset(found.defined))


_remembered = lru_cache(maxsize=64)(_parsed)  # a call is judged several times on its way


class _Reader(Redirections):
    """Reads commands one after another, as the shell's grammar divides them; how they depend on each other does not matter."""

    def __init__(self, text: str, found: Found, depth: int = 0) -> None:
        super().__init__(text, found, depth)
        self._words: list[Word] = []
        self._assigns: list[Word] = []
        self._closed = False
        """Whether a compound command has just ended: no other word may follow."""

    def read(self) -> None:
        """Read the whole text."""
        self.commands("")

    def inner(self, text: str) -> None:
        _Reader(text, self.found, self.depth + 1).read()

    def commands(self, closing: str, *, fed: bool = False) -> None:
        begin = len(self.found.parts)
        outer = self._words, self._assigns, self.begun, self._closed, self.feeding, len(self.awaited)
        self._fresh()
        self.feeding = Feeding(self.found.parts)
        levels: list[str] = []
        while sign := self._next():
            if sign == ")" and not levels:
                break
            self._token(sign, levels)
        if sign != closing or levels or self.feeding.open or len(self.awaited) != outer[5]:
            raise Unreadable
        self._end()
        if fed:
            self.feeding.mark(begin)
        self.at += len(closing)
        self._words, self._assigns, self.begun, self._closed, self.feeding, _ = outer

    def _next(self) -> str:
        self.skip_blanks()
        return self.peek()

    def _token(self, sign: str, levels: list[str]) -> None:
        if sign == "\n":
            self._line_end()
        elif sign == "#":
            end = self.text.find("\n", self.at)
            self.at = end if end >= 0 else len(self.text)
        elif sign == "(":
            self._open(levels)
        elif sign == ")":
            self._close(levels, "(")
            self.at += 1
            self._closed = True
        elif found := REDIRECTION.match(self.text, self.at):
            if sign in "<>" and self.peek(1) == "(" and len(found[0]) == 1:
                self._word(levels)
            else:
                self.redirect(found[0])
        elif found := _OPERATORS.match(self.text, self.at):
            self._end()
            self.at = found.end()
            self.feeding.fed = found[0] in ("|", "|&")
            if found[0].startswith(";") and len(found[0]) > 1:
                self._patterns(levels)
        else:
            self._word(levels)

    # ---- where commands end

    def _fresh(self) -> None:
        self._words, self._assigns, self.begun, self._closed = [], [], False, False

    def _end(self) -> None:
        if self._words or self._assigns:
            self.found.add(Part(tuple(self._words), tuple(self._assigns)))
        if self._words and (not self._words[0].static or self._words[0].text in _MOVE):
            self.found.moved = True
        if self.begun or self._closed:  # else it is the end of a line behind a pipe
            self.feeding.end()
        self._fresh()

    def _line_end(self) -> None:
        self._end()
        self.at += 1
        self.documents()

    def _open(self, levels: list[str]) -> None:
        if len(self._words) == 1 and not self._assigns:
            self._function(self._words.pop())
        elif self.begun or self._closed:
            raise Unreadable
        elif self.peek(1) == "(":
            self.arithmetic()
            self.evaluated()
            self._closed = True
        else:
            self.at += 1
            levels.append("(")
            self.feeding.enter()

    def _close(self, levels: list[str], opened: str) -> None:
        if not levels or levels.pop() != opened:
            raise Unreadable
        self._end()
        if opened == "(":
            self.feeding.leave()

    # ---- words

    def _word(self, levels: list[str]) -> None:
        word = self.word()
        if word.plain and self.peek() in ("<", ">") and (word.text.isdigit() or re.fullmatch(r"\{\w+\}", word.text)):
            if not REDIRECTION.match(self.text, self.at):
                raise Unreadable
            self.number = word.text
            return
        if not self.begun and word.plain and self._reserved(word.text, levels):
            return
        if self._closed:
            raise Unreadable
        self.begun = True
        if word.assigns and not self._words:
            self._assigns.append(word)
        else:
            self._words.append(word)

    def _reserved(self, text: str, levels: list[str]) -> bool:
        """Take a word of the grammar; whether it is one."""
        if text in _GO_ON:
            self._closed = False
            if text in _OPEN:
                self.feeding.enter()
            if text == "{":
                levels.append("{")
            elif text == "time":
                self._options_of_time()
        elif text in _CLOSE:
            self._end()
            if text in ("}", "esac"):
                self._close(levels, "{" if text == "}" else "case")
            self.feeding.leave()
            self._closed = True
        elif reader := _COMPOUND.get(text):
            if self._closed:
                raise Unreadable
            if text in _OPEN:
                self.feeding.enter()
            reader(self, levels)
        else:
            return False
        return True

    def _options_of_time(self) -> None:
        while self._next() == "-" and (
            found := re.compile(r"-p(?=[ \t\n;&|]|$)|--(?=[ \t])").match(self.text, self.at)
        ):
            self.at = found.end()

    def _function(self, name: Word) -> None:
        """Take `name()`; what follows is its body."""
        self.at += 1
        if self._next() != ")" or not name.static:
            raise Unreadable
        self.at += 1
        self._defines(name)
        self._fresh()

    def _defines(self, name: Word) -> None:
        self.found.defined.add(name.text)
        self.feeding.fed = True  # whoever calls it may feed it

    def _named_function(self, levels: list[str]) -> None:
        self.skip_blanks()
        name = self.word()
        if not name.static:
            raise Unreadable
        self._defines(name)
        if self._next() == "(":
            self._function(name)

    def _loop(self, levels: list[str]) -> None:
        """Take `for name in words`, which sets a variable for all that follows, or `for ((…))`."""
        if self._next() == "(":
            if self.peek(1) != "(":
                raise Unreadable
            self.arithmetic()
            return
        name = self.word()
        if name.plain is False:
            raise Unreadable
        self.found.add(Part((), (Word("", static=False, assigns=name.text),)))
        self._skip_lines()
        if not re.compile(r"in(?=[ \t\n;])").match(self.text, self.at):
            return
        self.at += 2
        while (sign := self._next()) not in ("\n", ";", ""):
            if sign in "|&()#" or (sign in "<>" and self.peek(1) != "("):
                raise Unreadable
            self.word()

    def _case(self, levels: list[str]) -> None:
        self.skip_blanks()
        self.word()
        self._skip_lines()
        if not re.compile(r"in(?=[ \t\n])").match(self.text, self.at):
            raise Unreadable
        self.at += 2
        levels.append("case")
        self._patterns(levels)

    def _patterns(self, levels: list[str]) -> None:
        """Take the patterns before the next commands of a `case`, or its end."""
        if not levels or levels[-1] != "case":
            raise Unreadable
        self._skip_lines()
        if re.compile(r"esac(?=[ \t\n;&|()<>]|$)").match(self.text, self.at):
            return  # read as a word
        if self.peek() == "(":
            self.at += 1
        while True:
            self.skip_blanks()
            self.word()
            sign = self._next()
            self.at += 1
            if sign == ")":
                return
            if sign != "|":
                raise Unreadable

    def _test(self, levels: list[str]) -> None:
        """Go over `[[ … ]]`."""
        while sign := self._next():
            if sign == "#":
                break
            if sign in "\n|&;()<>":
                self.at += 1
            elif (word := self.word()).plain and word.text == "]]":
                self.found.add(Part((Word("[["), Word("", static=False))))
                self._closed = True
                return
        raise Unreadable

    def _coprocess(self, levels: list[str]) -> None:
        raise Unreadable

    def _skip_lines(self) -> None:
        while self._next() == "\n":
            self.at += 1


_COMPOUND: dict[str, Callable[[_Reader, list[str]], None]] = {
    "for": _Reader._loop,
    "select": _Reader._loop,
    "case": _Reader._case,
    "function": _Reader._named_function,
    "[[": _Reader._test,
    "coproc": _Reader._coprocess,
}
