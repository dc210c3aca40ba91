"""A line that is being typed in bash: its words, and how bash itself would part the last one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """`words` without the program, `word` what stands before the cursor; `cut`: bash holds so much of it as words of its own."""

    words: list[str]
    word: str
    cut: int


def typed_line(environ: Mapping[str, str]) -> Line:
    """Read COMP_LINE up to COMP_POINT (bytes), and COMP_WORDBREAKS."""
    line = environ.get("COMP_LINE", "").encode("utf-8", "surrogateescape")
    point = environ.get("COMP_POINT", "")
    before = line[: int(point)] if point.isdigit() else line
    words, quote = _split(before.decode("utf-8", "surrogateescape"))
    breaks = set(environ.get("COMP_WORDBREAKS", ":=")) & set(":=@")
    word = words[-1]
    cut = 0 if quote else max((word.rfind(sign) + 1 for sign in breaks), default=0)
    return Line(words[1:-1], word, cut)


def _split(text: str) -> tuple[list[str], str]:
    """The words as a shell parts them, the last one unfinished ('' after a space); and the quote that is still open."""
    words, quote, begun = [""], "", False
    signs = iter(text)
    for sign in signs:
        if quote:
            if sign == quote:
                quote = ""
            elif sign == "\\" and quote == '"':
                words[-1] += next(signs, "")
            else:
                words[-1] += sign
        elif sign in "'\"":
            quote, begun = sign, True
        elif sign == "\\":
            words[-1] += next(signs, "")
            begun = True
        elif not sign.isspace():
            words[-1] += sign
            begun = True
        elif begun:
            words.append("")
            begun = False
    return (words if len(words) > 1 else ["", words[0]]), quote
