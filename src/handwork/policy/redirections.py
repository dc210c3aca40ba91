"""Redirections in the shell's language: what they open, and the documents that follow them."""

from __future__ import annotations

import re
from typing import Literal

from handwork.policy.feeding import Feeding
from handwork.policy.found import MOST, Found
from handwork.policy.parts import Access, Part
from handwork.policy.word import UNKNOWN, Unreadable, Word
from handwork.policy.words import Words

REDIRECTION = re.compile(r"&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||<|>")
_STREAMS = re.compile(r"/dev/(null|zero|full|tty|std(in|out|err)|fd/\d+)")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/([^/]*)/([^/]*)")


class Redirections(Words):
    """Reads redirections into what was found."""

    def __init__(self, text: str, found: Found, depth: int = 0) -> None:
        super().__init__(text, depth)
        self.found = found
        self.feeding = Feeding(found.parts)
        self.number = ""
        """The number in front of a redirection."""
        self.begun = False
        """Whether the command has a word, an assignment or a redirection."""
        self.awaited: list[tuple[str, bool, bool]] = []
        """The here-documents that begin behind this line: their end, whether tabs are cut off, whether it was quoted."""

    def evaluated(self) -> None:
        self.found.add(Part((Word("(("), UNKNOWN)))

    def documents(self) -> None:
        """Read the here-documents that begin here."""
        documents, self.awaited = self.awaited, []
        begin = len(self.found.parts)
        for ending, tabs, quoted in documents:
            self._document(ending, tabs=tabs, quoted=quoted)
        self.feeding.mark(begin)  # what is substituted in them reads what the command read, which has ended before

    def _document(self, ending: str, *, tabs: bool, quoted: bool) -> None:
        begin, at = self.at, self.at
        while at < len(self.text):
            end = self.text.find("\n", at)
            line = self.text[at : end if end >= 0 else len(self.text)]
            if (line.lstrip("\t") if tabs else line) == ending:
                self.at = end + 1 if end >= 0 else len(self.text)
                if not quoted:
                    type(self)(self.text[begin:at], self.found, self.depth + 1).scan()
                return
            if end < 0 or (not quoted and line.endswith("\\")):
                break
            at = end + 1
        raise Unreadable

    def redirect(self, operator: str) -> None:
        """Read what stands behind an operator."""
        self.begun = True
        self.at += len(operator)
        self.skip_blanks()
        target = self.word()
        number, self.number = self.number, ""
        if _feeds(operator, number, target):
            self.feeding.fed = True
        if operator in ("<<", "<<-"):
            if not target.static:
                raise Unreadable
            self.awaited.append((target.text, operator == "<<-", not target.plain))
        elif operator not in ("<<<", ">&", "<&") or (operator[1:] == "&" and not _duplicates(target)):
            for kind in _OPENED[operator]:
                self._opens(kind, target)

    def _opens(self, kind: Literal["read", "write"], target: Word) -> None:
        if not target.static or not _STREAMS.fullmatch(target.text):
            socket = _SOCKET.fullmatch(target.text)
            word = Word(f"{socket[1]}:{socket[2]}", target.static) if socket else target
            self.found.accesses.append(Access("network" if socket else kind, word, self.found.moved))
            if len(self.found.accesses) > MOST:
                raise Unreadable


def _feeds(operator: str, number: str, target: Word) -> bool:
    """Whether it gives a command something to read: what any other stream is given may become its standard input."""
    if operator == ">&" and number.strip("0") == "" and number:
        return target.text != "-"
    nothing = "-" if operator == "<&" else "/dev/null"
    return operator.startswith("<") and not (target.static and operator in ("<", "<&") and target.text == nothing)


def _duplicates(target: Word) -> bool:
    return target.static and re.fullmatch(r"\d*-?", target.text) is not None


_OPENED: dict[str, tuple[Literal["read", "write"], ...]] = {
    ">": ("write",),
    ">>": ("write",),
    ">|": ("write",),
    "&>": ("write",),
    "&>>": ("write",),
    ">&": ("write",),
    "<>": ("read", "write"),
    "<": ("read",),
    "<&": ("read",),
}
