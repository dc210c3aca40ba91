"""Which files a project leaves out: the patterns of .gitignore, .ignore and .git/info/exclude, as git reads them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

_MOST = 1_000_000
"""Bytes of an ignore file that are read."""
_PLAIN = re.compile(r"[^*?\[\\/]+\Z")
_SUFFIX = re.compile(r"\*(\.[^*?\[\\/]+)\Z")
_PIECE = re.compile(r"\*+|\?|\\.|\[[!^]?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)


class Rules:
    """The patterns of one file; the last that fits decides."""

    def __init__(self, text: str) -> None:
        self._rules: list[tuple[bool, bool, re.Pattern[str] | None]] = []
        """Whether it leaves out or takes back, whether it is for folders only, and how it fits a path."""
        self._names: dict[str, list[int]] = {}
        """Patterns that are just a name, or `*` and an ending, by that: projects have hundreds of them."""
        self._patterns: list[int] = []
        for line in text.split("\n"):
            self._add(line)

    def _add(self, line: str) -> None:
        line = re.sub(r"(?<!\\)[ \t]+\Z", "", line.rstrip("\r"))
        if not line or line.startswith("#"):
            return
        leaves_out = not line.startswith("!")
        line = line if leaves_out else line[1:]
        folders = line.endswith("/")
        line = line[:-1] if folders else line
        if not line:
            return
        number = len(self._rules)
        suffix = _SUFFIX.match(line)
        if _PLAIN.match(line) or suffix:
            self._names.setdefault("*" + suffix[1] if suffix else line, []).append(number)
            self._rules.append((leaves_out, folders, None))
        elif (pattern := glob(line)) is not None:
            self._patterns.append(number)
            self._rules.append((leaves_out, folders, pattern))

    def says(self, path: str, folder: bool) -> bool | None:
        """True: leave this out; False: take it back; None: no pattern fits. `path` is relative to the file's folder."""
        name = path[path.rfind("/") + 1 :]
        best = max(self._by_name(name, folder), default=-1)
        for number in reversed(self._patterns):
            if number < best:
                break
            _, folders, pattern = self._rules[number]
            if (folder or not folders) and pattern and pattern.match(path):
                best = number
                break
        return None if best < 0 else self._rules[best][0]

    def _by_name(self, name: str, folder: bool) -> list[int]:
        keys, dot = [name], name.find(".")
        while dot >= 0:
            keys.append("*" + name[dot:])
            dot = name.find(".", dot + 1)
        return [n for key in keys for n in self._names.get(key, ()) if folder or not self._rules[n][1]]


def glob(text: str) -> re.Pattern[str] | None:
    """A pattern of gitignore(5) for paths relative to its file; None for one that can fit nothing."""
    anchored = "/" in text
    parts = text[text.startswith("/") :].split("/")
    if not all(parts):
        return None
    out = "" if anchored else "(?:.*/)?"
    counter = iter(range(1_000_000))
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            out += ".+" if last else "(?:[^/]+/)*"
        else:
            out += _segment(part, counter) + ("" if last else "/")
    try:
        return re.compile(out + r"\Z", re.DOTALL)
    except re.error:
        return None


def _segment(part: str, counter: Iterator[int]) -> str:
    """One name of a pattern. Between two stars the first place that fits is taken for good, so that no name takes long."""
    chunks = [""]
    for piece in _PIECE.findall(part):
        if piece.startswith("*"):
            chunks.append("")
        elif piece == "?":
            chunks[-1] += "[^/]"
        elif piece.startswith("[") and len(piece) > 1:
            chunks[-1] += _one_of(piece)
        elif piece.startswith("\\") and len(piece) > 1:
            chunks[-1] += re.escape(piece[1])
        elif piece in ("[", "\\"):
            chunks[-1] += "(?!)"  # open to the end: it fits nothing
        else:
            chunks[-1] += re.escape(piece)
    first, *rest = chunks
    if not rest:
        return first
    out = first
    for chunk in rest[:-1]:
        if chunk:
            name = f"g{next(counter)}"
            out += f"(?=(?P<{name}>[^/]*?{chunk}))(?P={name})"
    return f"{out}[^/]*{rest[-1]}"


def _one_of(piece: str) -> str:
    inside = piece[1:-1]
    negated = inside[:1] in ("!", "^")
    inside = inside[1:] if negated else inside
    safe = re.sub(r"([\[&~|])", r"\\\1", inside.replace("\\\\", "\\x5c"))
    if safe.startswith("]"):
        safe = "\\" + safe
    return f"(?!/)[{'^' if negated else ''}{safe}]"


def read_rules(path: str) -> Rules | None:
    """The rules of a file; None if there is none that can be read. Links and pipes are none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        data = b""
        while len(data) < _MOST and (piece := os.read(fd, _MOST)):
            data += piece
    except OSError:
        return None
    finally:
        os.close(fd)
    return Rules(data.decode("utf-8", "surrogateescape").lstrip("\ufeff"))
