"""A conversation in lines at a terminal: say, ask, ask for a secret, let choose; whoever is asked can leave at any time."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from getpass import getpass
from typing import TextIO

from handwork.cli.clean import clean_for_terminal
from handwork.cli.lines import Screen

_LEAVE = {"q", "quit", "exit", ":q"}
_PASTING = 0.05
"""Seconds within which the next line of a pasted text follows, or the rest of a key that begins as Esc does."""
_ESC = "\x1b"
_OTHER_KEY = re.compile(r"\[[0-?]*[@-~]|O?.", re.DOTALL)
"""What follows Esc in what another key sends."""


class Left(Exception):
    """Whoever was asked has left: q, Esc, Ctrl-D."""


class Talk:
    """Writes on a screen and reads lines of a terminal."""

    def __init__(self, screen: Screen, source: TextIO) -> None:
        self.screen, self._source = screen, source

    def say(self, text: str = "", style: str = "") -> None:
        """Write text, its lines broken between words where the terminal ends."""
        self.screen.line(clean_for_terminal(text), style)

    def ask(self, prompt: str) -> str:
        """One line, without the spaces around it; '' for an empty one. Raises Left."""
        with self._keys():
            self.screen.write(clean_for_terminal(prompt), "bold")
            return self._answer(self._line())

    def secret(self, prompt: str) -> str:
        """What is typed or pasted is not shown; the lines of one paste are one answer. Raises Left."""
        if os.name != "posix":
            self.screen.write(prompt, "bold")
            return self._answer(getpass(""))
        with self._keys(seen=False):
            self.screen.write(prompt, "bold")
            text = self._line(seen=False)
            while select.select([self._source], [], [], _PASTING)[0] and (more := self._read()):
                text += more
        self.screen.line()
        return self._answer(text)

    def choose(self, rows: Sequence[str], prompt: str) -> int | None:
        """Number the rows and let one be chosen: its place; None for an empty answer. Raises Left."""
        for number, row in enumerate(rows, 1):
            self.say(f"{number:>3}  {row}")
        while answer := self.ask(prompt):
            if answer.isdecimal() and 1 <= int(answer) <= len(rows):
                return int(answer) - 1
            self.say(f"Type a number from 1 to {len(rows)}; Enter goes back, q leaves.", "yellow")
        return None

    def agree(self, question: str) -> bool:
        """Yes (which Enter means) or no. Raises Left."""
        while True:
            answer = self.ask(f"{question} [Y/n] ").lower()
            if answer in ("", "y", "yes"):
                return True
            if answer in ("n", "no"):
                return False
            self.say("Type y or n; q leaves.", "yellow")

    def _answer(self, text: str) -> str:
        text = text.strip()
        if text.lower() in _LEAVE:
            raise Left
        return text

    def _line(self, *, seen: bool = True) -> str:
        text = self._read()
        while text and not text.endswith("\n"):
            if text.endswith(_ESC):
                rest = self._rest_of_key()
                typed = _OTHER_KEY.sub("", rest, count=1)
                if seen and not typed:  # what is shown of the key is taken away
                    print("\b \b" * len(f"^[{rest}"), end="", file=sys.stderr, flush=True)
                text = text.removesuffix(_ESC) + typed if rest else ""
                if typed or not rest:
                    continue
            text += self._read() or "\n"
        if not text:
            self.screen.line()
            raise Left
        return text

    def _rest_of_key(self) -> str:
        """What an arrow or another such key sends after its Esc, with what was typed since; '' if it was Esc itself."""
        import termios

        descriptor = self._source.fileno()
        before = termios.tcgetattr(descriptor)
        at_once = [*before]
        at_once[3] &= ~termios.ICANON
        termios.tcsetattr(descriptor, termios.TCSANOW, at_once)
        try:
            return self._read() if select.select([self._source], [], [], _PASTING)[0] else ""
        finally:
            termios.tcsetattr(descriptor, termios.TCSANOW, before)

    def _read(self) -> str:
        return os.read(self._source.fileno(), 65536).decode(errors="replace")

    @contextmanager
    def _keys(self, *, seen: bool = True) -> Iterator[None]:
        """Esc ends a line as Enter does; without `seen` the terminal shows nothing of what is typed."""
        if os.name != "posix":
            yield
            return
        import termios

        descriptor = self._source.fileno()
        before = termios.tcgetattr(descriptor)
        asked = [*before]
        asked[6] = [*before[6]]
        asked[6][termios.VEOL] = _ESC.encode()
        if not seen:
            asked[3] &= ~termios.ECHO
        termios.tcsetattr(descriptor, termios.TCSADRAIN, asked)
        try:
            yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
