"""On which line of a TOML or JSON text each key stands, for every way in which one can be written."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]
"""A key with the tables that it stands in; an element of an array has its number for a name."""

DEEPEST = 64
"""No setting lies deeper; what does is found, and not followed."""

_BLANK = r"(?:[ \t\r\n]+|#[^\n]*)*"
_PART = r"[ \t]*(?:\"((?:[^\"\\\n]|\\.)*)\"|'([^'\n]*)'|([\w-]+))[ \t]*"
_SCALAR = r"\d{4}-\d\d-\d\d \d[^,\]}\s#]*|[^,\[\]{}\s#]+"  # a date's time may stand after a blank
_LITERAL = ("'''", "'")

Place: TypeAlias = tuple[Path, int, bool]
"""One mention of a key: its path, the line, and whether it is given a value right there; else a table is only named."""


class KeyLines:
    """The lines of a text's keys; read once, when the first is asked for, in time linear in the text's length.

    The text is meant to be valid; of one that is not, the keys before the fault are known.
    """

    def __init__(self, text: str, *, json: bool = False) -> None:
        self._text, self._json = text, json

    def line(self, path: Path) -> int:
        """The line on which a key is first named; of a key that does not stand there, the innermost table's that does."""
        while path and path not in self._first:
            path = path[:-1]
        return self._first.get(path, 1)

    def repeated(self) -> tuple[Path, int, int] | None:
        """The first key that is given a value twice, with both lines."""
        seen: dict[Path, int] = {}
        for path, line, sets in self._places():
            if sets and path in seen:
                return path, seen[path], line
            if sets:
                seen[path] = line
        return None

    def on(self, line: int) -> Path:
        """The last key that is named on a line; () if there is none."""
        return next((path for path, number, _ in reversed([*self._places()]) if number == line), ())

    def too_deep(self) -> int | None:
        """The first line with more levels than any setting has."""
        return next((line for path, line, _ in self._places() if len(path) > DEEPEST), None)

    @cached_property
    def _first(self) -> dict[Path, int]:
        first: dict[Path, int] = {}
        for path, line, _ in self._places():
            first.setdefault(path, line)
        return first

    def _places(self) -> Iterator[Place]:
        scan = _Scan(self._text)
        return scan.value(()) if self._json else scan.document()


class _Scan:
    """One walk over a text."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._line, self._counted = 1, 0
        self._arrays: dict[Path, int] = {}
        # made here and not at the top, since most programs never ask for a line
        self._blank, self._part, self._scalar = re.compile(_BLANK), re.compile(_PART), re.compile(_SCALAR)

    def document(self) -> Iterator[Place]:
        """The keys of a TOML document."""
        table: Path = ()
        while self._skip_blank():
            line, header = self._here(), self._text[self._at] == "["
            array = header and self._text.startswith("[[", self._at)
            self._at += 2 if array else 1 if header else 0
            if (key := self._key()) is None:
                return
            yield from ((table[: 0 if header else None] + key[:n], line, False) for n in range(1, len(key)))
            if header:
                table = self._element(key) if array else self._in_arrays(key)
                yield key, line, False
                yield table, line, False
                self._at += 2 if array else 1
            else:
                yield table + key, line, True
                self._at += 1
                yield from self.value(table + key)

    def value(self, path: Path) -> Iterator[Place]:
        """The keys and elements in one value, with those of the values in it."""
        levels: list[tuple[Path, bool, int]] = []  # path, whether it is an array, how many elements came
        key: Path | None = path  # whose value comes next; None: in a table, where a key comes next
        while self._skip_blank():
            char = self._text[self._at]
            if char in ",]}":
                self._at += 1
                if char != ",":
                    levels[-1:] = []
                if not levels:
                    return
                key = None
                continue
            if levels and levels[-1][1]:
                outer, _, number = levels[-1]
                levels[-1] = (outer, True, number + 1)
                key = (*outer, str(number))
                yield key, self._here(), True
            elif key is None:
                line, part = self._here(), self._key()
                if part is None:
                    return
                outer = levels[-1][0]
                yield from ((outer + part[:n], line, False) for n in range(1, len(part)))
                key = outer + part
                yield key, line, True
                self._at += 1  # = or :
                continue
            if char in "[{":
                if len(levels) > DEEPEST:
                    return
                levels.append((key, char == "[", 0))
                self._at += 1
            elif not self._skip_scalar():
                return
            key = None
            if not levels:
                return

    def _skip_blank(self) -> bool:
        """Go to the next thing that is neither blank nor a comment; False at the end."""
        found = self._blank.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at < len(self._text)

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _key(self) -> Path | None:
        """A key with its dots; None where none stands. What lies too deep is cut."""
        parts: list[str] = []
        while found := self._part.match(self._text, self._at):
            basic, literal, bare = found.groups()
            if len(parts) <= DEEPEST:
                parts.append(bare or literal or _unescaped(basic or ""))
            self._at = found.end()
            if not self._text.startswith(".", self._at):
                return tuple(parts)
            self._at += 1
        return None

    def _skip_scalar(self) -> bool:
        for quote in ('"""', "'''", '"', "'"):
            if self._text.startswith(quote, self._at):
                return self._skip_string(quote)
        found = self._scalar.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found is not None

    def _skip_string(self, quote: str) -> bool:
        begin = self._at + len(quote)
        if quote in _LITERAL:
            end = self._text.find(quote, begin)
        else:
            marks = re.compile(rf"\\.|{quote}", re.DOTALL).finditer(self._text, begin)
            end = next((mark.start() for mark in marks if mark[0] == quote), -1)
        if end < 0:
            return False
        self._at = end + len(quote)
        while len(quote) == 3 and self._text.startswith(quote[0], self._at):
            self._at += 1  # up to two quotes may stand right before the closing three
        return True

    def _element(self, key: Path) -> Path:
        """The path of the array's next table."""
        key = self._in_arrays(key[:-1]) + key[-1:]
        number = self._arrays[key] = self._arrays.get(key, -1) + 1
        return (*key, str(number))

    def _in_arrays(self, key: Path) -> Path:
        """The path with the last element of every array of tables on its way."""
        path: Path = ()
        for part in key:
            path = (*path, part)
            if path in self._arrays:
                path = (*path, str(self._arrays[path]))
        return path


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        pass
    try:
        return str(tomllib.loads(f'key = "{text}"')["key"])
    except tomllib.TOMLDecodeError:
        return text
