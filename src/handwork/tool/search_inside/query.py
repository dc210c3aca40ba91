"""What is looked for: a regular expression, or plain text where it is none; and the same in ripgrep's words."""

from __future__ import annotations

import fnmatch
import re
import warnings

from .ignore import glob

_TOKEN = re.compile(
    r"\\(?P<known>[wWdDbB])|\\(?P<blank>[sS])|\\(?P<sign>[!-/:-@\[-`{-~])"
    r"|(?P<dot>\.)|(?P<end>\$)|(?P<group>\((?:\?:)?(?![?*+{]))"
    r"|(?P<many>(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??(?![*+?{]))"
    r"|(?P<set>\[\^?(?:\\[wd\\\]^-]|[A-Za-z0-9_ !\"#$%'()*+,./:;<=>?@{}-])+\])"
    r"|(?P<plain>[A-Za-z0-9_ !\"#%&',/:;<=>@`~^|)\]}-])"
)
_TO_RIPGREP = {"dot": r"[^\n]", "end": r"(?:\r?$)"}
_SPACES = r"\s\x1c-\x1f"
"""What Python takes for blanks."""
_GLOB = re.compile(r"(?<![.)\]])[*?]")
_NO_GLOB = re.compile(r"\.[*+?]|[\\^$()|+{]")


class Query:
    """`pattern` finds it in one line of text, case ignored unless the query has a capital letter; `notes` say how it was read."""

    def __init__(self, text: str) -> None:
        self.notes: list[str] = []
        self._literal = False
        self._text = text
        pattern = self._compiled(text)
        if pattern is None:
            self._literal = True
            pattern = re.compile(re.escape(text), _case(text))
        self.pattern = pattern

    def _compiled(self, text: str) -> re.Pattern[str] | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if "[[:" in text:
                    self.notes.append("Classes like [[:alpha:]] are not known here: write \\w, \\d, [A-Za-z].")
                return re.compile(text, _case(re.sub(r"\\.", "", text)))
            except (re.error, RecursionError, OverflowError, MemoryError) as error:
                self.notes.append(
                    f"The query is no valid regular expression ({error}), so it was searched as plain text."
                )
        return None

    @property
    def ignores_case(self) -> bool:
        return bool(self.pattern.flags & re.IGNORECASE)

    @property
    def simple(self) -> bool:
        """Whether what it finds in a line it also finds in a text of several lines."""
        return self.ripgrep is not None

    @property
    def ripgrep(self) -> str | None:
        """A pattern with which ripgrep finds, in a line of ASCII, whatever this one finds, and perhaps more; None if there is none."""
        if self._literal:
            return _escaped(self._text) if self._text.isascii() else None
        out, at = "", 0
        while at < len(self._text):
            found = _TOKEN.match(self._text, at)
            if found is None:
                return None
            kind, at = found.lastgroup or "", found.end()
            if kind == "blank":
                out += f"[{'^' if found['blank'] == 'S' else ''}{_SPACES}]"
            elif kind == "sign":
                out += _escaped(found["sign"])
            else:
                out += _TO_RIPGREP.get(kind, found[0])
        return out


def _case(text: str) -> re.RegexFlag:
    return re.RegexFlag(0) if any(char.isupper() for char in text) else re.IGNORECASE


def _escaped(text: str) -> str:
    return re.sub(r"([\\.+*?()|\[\]{}^$#&~-])", r"\\\1", text)


def name_query(text: str) -> Query:
    """The query for names of files: what has the stars of a glob and no other sign of an expression is one."""
    if not _GLOB.search(text) or _NO_GLOB.search(text):
        return Query(text)
    found = Query(fnmatch.translate(text) if "/" not in text else _path_glob(text))
    found.pattern = re.compile(found.pattern.pattern, _case(text))
    found.notes = ["The query was read as a glob."]
    return found


def _path_glob(text: str) -> str:
    pattern = glob(text)
    return pattern.pattern if pattern is not None else re.escape(text)
