"""Emphasis, code and links inside one line of Markdown."""

from __future__ import annotations

import re

from rich.text import Text

_OPENS = r"(?![\s*_~/.,;:!?)\]}])"
_MARKS = re.compile(
    r"(?P<code>(?<!`)(?P<ticks>`+)(?!`)(?P<inner>.+?)(?<!`)(?P=ticks)(?!`))"
    rf"|(?<![A-Za-z0-9*/\\])\*\*{_OPENS}(?P<bold>[^*\n]+?(?:\*[^*\n]+?\*[^*\n]*?)?)(?<![\s/(\[])\*\*(?![*/])"
    rf"|(?<![\w*/\\])\*{_OPENS}(?P<italic>[^*\n]+?)(?<![\s/(\[])\*(?![\w*/])"
    rf"|(?<![\w/\\])__{_OPENS}(?P<bold2>[^_\s]+[ \t][^_\n]*?)(?<!\s)__(?![\w/(])"
    rf"|(?<![\w/\\])_{_OPENS}(?P<italic2>[^_\n]+?)(?<!\s)_(?![\w/(])"
    rf"|(?<![\w~/])~~{_OPENS}(?P<strike>[^~\n]+?)(?<!\s)~~(?!~)"
    r"|(?<![!\\\w])\[(?P<label>[^\[\]\n]+)\]\((?P<url>[a-z][a-z0-9+.-]*:[^\s()]+(?:\([^\s()]*\)[^\s()]*)*)\)"
)
_STYLES = {"bold": "bold", "italic": "italic", "bold2": "bold", "italic2": "italic", "strike": "strike"}
_LONGEST = 20_000
"""A longer line is drawn as it is: it is no prose, and looking for pairs of marks takes time."""


def inline(line: str, style: str = "") -> Text:
    """The line in styles, without the marks that ask for them. What only looks like a mark stays."""
    if len(line) > _LONGEST:
        return Text(line, style)
    text, end = Text(style=style), 0
    for found in _MARKS.finditer(line):
        text.append(line[end : found.start()])
        end = found.end()
        if found["code"] is not None:
            text.append(_code(found["inner"]), "cyan")
        elif found["label"] is not None:
            text.append_text(_link(found["label"], found["url"]))
        else:
            name = next(name for name in _STYLES if found[name] is not None)
            inner = inline(found[name])
            inner.stylize(_STYLES[name])
            text.append_text(inner)
    return text.append(line[end:])


def _code(inner: str) -> str:
    """Code between blanks, as code that begins with a tick must be, loses one on each side."""
    return inner[1:-1] if inner.startswith(" ") and inner.endswith(" ") and inner.strip() else inner


def _link(label: str, url: str) -> Text:
    text = inline(label)
    text.stylize("underline")
    return text if label == url else text.append(f" ({url})", "dim")
