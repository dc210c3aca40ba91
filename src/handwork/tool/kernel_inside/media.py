"""Runs inside the sandbox: what a value offers to a notebook, as text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

from .values import bounded

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_SAYS_NOTHING = re.compile(r"<[\w.]+(?: object)?(?: at 0x[0-9a-f]+)?>\Z")
_DRAWN_BY_A_BROWSER = re.compile(r"application/vnd\.(?:vega|plotly|bokeh|holoviews)|application/javascript")
_BLOCKS = frozenset(
    ("p", "div", "br", "tr", "li", "ul", "ol", "table", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "section", "article")
)


def text_of(data: dict[str, Any]) -> str:
    """The text that says most: Python's own, unless it only names a class."""
    plain = str(data.get("text/plain") or "")
    if any(data.get(kind) for kind in PICTURES):
        return plain
    if not plain or _SAYS_NOTHING.match(plain):
        plain = bounded(_richer(data)) or plain
    if any(_DRAWN_BY_A_BROWSER.match(kind) for kind in data):
        plain += "\n[This is drawn by a browser and cannot be shown here: make a PNG of it to see it.]"
    return plain


def _richer(data: dict[str, Any]) -> str:
    for kind in ("text/markdown", "text/latex"):
        if text := data.get(kind):
            return str(text)
    if markup := data.get("text/html"):
        return text_of_html(str(markup))
    if "application/json" in data:
        return json.dumps(data["application/json"], ensure_ascii=False, indent=1, default=str)
    if picture := data.get("image/svg+xml"):
        return f"[An SVG picture of {len(picture)} characters: make a PNG of it to see it.]"
    return ""


def text_of_html(markup: str) -> str:
    """HTML as plain text: blocks on lines of their own, cells parted by bars."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    lines = (re.sub(r"[ \t\xa0]+", " ", line).strip(" |") for line in "".join(reader.parts).splitlines())
    return "\n".join(line for line in lines if line)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in ("script", "style"):
            self._hidden += 1
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._hidden = max(self._hidden - 1, 0)
        elif tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data.replace("\n", " "))
