"""The lines of one file in which a query is found, each cut around it; binary files have none."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from .query import Query

_BLOCK = 1 << 20
_LONGEST = 240
_BEFORE = 80
"""Characters of a long line that are shown, and of them those before the match."""
_WIDE = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_MOST_WIDE = 64_000_000


class Match(NamedTuple):
    """A line, counted from 1, and what is shown of it."""

    number: int
    text: str


class Unsearchable(Exception):
    """The file is binary, or cannot be read; says which."""


def matches(path: str, query: Query) -> Iterator[Match]:
    """Raises Unsearchable. A line ends with LF, or CRLF."""
    fd = _opened(path)
    try:
        yield from _found(fd, query)
    except OSError as error:
        raise Unsearchable("unreadable") from error
    finally:
        os.close(fd)


def _opened(path: str) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Unsearchable("unreadable") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Unsearchable("unreadable")
    return fd


def _found(fd: int, query: Query) -> Iterator[Match]:
    number = 1
    for text in _texts(fd):
        if query.simple and not query.pattern.search(text):
            number += text.count("\n")
            continue
        lines = text.split("\n")
        for line in lines if lines[-1] else lines[:-1]:
            line = line[:-1] if line.endswith("\r") else line
            found = query.pattern.search(line)
            if found:
                yield Match(number, _around(line, found.start()))
            number += 1


def _texts(fd: int) -> Iterator[str]:
    """The file in pieces of whole lines."""
    data = os.read(fd, _BLOCK)
    encoding = next((name for mark, name in _WIDE.items() if data.startswith(mark)), "")
    if encoding:
        yield _wide(fd, data, encoding)
        return
    if b"\0" in data[:8192]:
        raise Unsearchable("binary")
    data = data[3:] if data.startswith(codecs.BOM_UTF8) else data
    begun: list[bytes] = []
    while data:
        end = data.rfind(b"\n") + 1
        if end:
            yield b"".join([*begun, data[:end]]).decode("utf-8", "surrogateescape")
            begun, data = [], data[end:]
        begun.append(data)
        data = os.read(fd, _BLOCK)
    rest = b"".join(begun)
    if rest:
        yield rest.decode("utf-8", "surrogateescape")


def _wide(fd: int, data: bytes, encoding: str) -> str:
    if os.fstat(fd).st_size > _MOST_WIDE:
        raise Unsearchable("binary")
    parts = [data]
    while parts[-1]:
        parts.append(os.read(fd, _BLOCK))
    try:
        return b"".join(parts).decode(encoding)
    except UnicodeDecodeError as error:
        raise Unsearchable("binary") from error


def _around(line: str, start: int) -> str:
    """The line, or of a long one what stands around the match."""
    if len(line) <= _LONGEST:
        return shown(line)
    low = max(min(start - _BEFORE, len(line) - _LONGEST), 0)
    high = low + _LONGEST
    return f"{'…' if low else ''}{shown(line[low:high])}{'…' if high < len(line) else ''}"


def shown(text: str, line_end: str | None = None) -> str:
    """Text that can be sent and read: bytes that are no UTF-8 as \ufffd, NUL and lone CR as signs."""
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text.replace("\0", "\u2400").replace("\r", "\u240d").replace("\n", line_end or "\n")
