"""A file's bytes as text and back, without losing one: encoding, byte-order mark and line endings."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from handwork.errors import ToolError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins as UTF-16's mark does, so it is asked first
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LONE = re.compile("[\udc80-\udcff]")


def is_binary(data: bytes) -> bool:
    """Whether these bytes are no text: a NUL near the start (git's rule) and no mark of UTF-16 or UTF-32 before it."""
    return b"\0" in data[:8192] and not is_wide(data)


def is_wide(data: bytes) -> bool:
    """Whether the file says that it is UTF-16 or UTF-32, where a line end is more than one byte."""
    return data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE))


@dataclass(frozen=True)
class FileText:
    """A file as text: `mark + text.encode(encoding, errors)` is exactly the file's bytes."""

    text: str
    encoding: str = "utf-8"
    errors: str = "strict"
    mark: bytes = b""

    @classmethod
    def decode(cls, data: bytes) -> FileText:
        """Read any bytes; what is neither UTF-8 nor marked UTF-16 or UTF-32 is read as Windows-1252 or Latin-1, byte for byte."""
        for mark, encoding in _MARKS:
            if data.startswith(mark) and (text := _exactly(data[len(mark) :], encoding)) is not None:
                return cls(text, encoding, mark=mark)
        if (text := _exactly(data, "utf-8")) is not None:
            return cls(text)
        text = data.decode("utf-8", "surrogateescape")
        broken = len(_LONE.findall(text))
        if len(text) - len(text.encode("ascii", "ignore")) >= 2 * broken:
            return cls(text, errors="surrogateescape")  # UTF-8 with a few stray bytes
        if (text2 := _exactly(data, "cp1252")) is not None:
            return cls(text2, "cp1252")
        return cls(data.decode("latin-1"), "latin-1")

    def encode(self) -> bytes:
        """The bytes. A ToolError names the characters that the file's encoding cannot hold."""
        try:
            return self.mark + self.text.encode(self.encoding, self.errors)
        except UnicodeEncodeError as error:
            missing = self.text[error.start : error.start + 10].split()[:1] or [self.text[error.start]]
            raise ToolError(
                f"The file's encoding is {self.encoding}, which cannot hold {missing[0]!r}. "
                "Use other characters, or convert the file to UTF-8 first (with bash: iconv)."
            ) from None

    def with_text(self, text: str) -> FileText:
        """The same file with other text."""
        return FileText(text, self.encoding, self.errors, self.mark)

    @cached_property
    def ending(self) -> str:
        """The line ending that the file uses most; the first one on a tie; LF if it has no line end."""
        text = self.text
        pairs = text.count("\r\n")
        counts = {"\r\n": pairs, "\n": text.count("\n") - pairs}
        if not any(counts.values()):
            return "\r" if "\r" in text else "\n"
        if counts["\r\n"] == counts["\n"]:
            first = text.index("\n")
            return "\r\n" if first and text[first - 1] == "\r" else "\n"
        return max(counts, key=lambda name: counts[name])

    @cached_property
    def lines(self) -> list[str]:
        """The lines with their endings. Lines end as `cat -n` counts them (LF); in a file without any LF, at a lone CR."""
        separator = "\r" if self.ending == "\r" else "\n"
        lines = self.text.split(separator)
        last = lines.pop()
        return [line + separator for line in lines] + ([last] if last else [])

    @cached_property
    def plain(self) -> Plain:
        """The text with every line ending as LF, as a model sees and writes it."""
        return Plain.of(self)

    def line_at(self, offset: int) -> int:
        """The number (from 1) of the line that holds this offset of `text`."""
        return self.text.count("\r" if self.ending == "\r" else "\n", 0, offset) + 1


def _exactly(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    try:
        return text if text.encode(encoding) == data else None
    except UnicodeEncodeError:
        return None


@dataclass(frozen=True)
class Plain:
    """Text with LF endings that knows where each of its offsets lies in the original."""

    text: str
    joints: Sequence[int] = field(repr=False)
    """The offsets in `text` of those line ends that were CRLF."""

    @classmethod
    def of(cls, file: FileText) -> Plain:
        if file.ending == "\r":
            return cls(file.text.replace("\r", "\n"), ())
        if "\r\n" not in file.text:
            return cls(file.text, ())
        joints = [match.start() - index for index, match in enumerate(re.finditer("\r\n", file.text))]
        return cls(file.text.replace("\r\n", "\n"), joints)

    def original(self, offset: int) -> int:
        """Where this offset of `text` lies in the original text."""
        return offset + bisect_left(self.joints, offset)


def as_plain(text: str) -> str:
    """A model's text with LF endings."""
    return text.replace("\r\n", "\n")


def visible(line: str) -> str:
    """A line as it is shown: without its ending, undecodable bytes and NUL as a sign."""
    return _LONE.sub("\ufffd", line.removesuffix("\n").removesuffix("\r")).replace("\0", "\u2400")
