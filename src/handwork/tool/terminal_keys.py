"""What the model types into a terminal: text as it is, and escapes for the keys that are no characters."""

from __future__ import annotations

import re

from handwork.errors import ToolError

_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|.|\Z)", re.DOTALL)
_KEYS = {"n": "\r", "r": "\r", "t": "\t", "e": "\x1b", "\\": "\\"}


def typed(text: str) -> bytes:
    """The bytes that a keyboard would send.

    `\\n` is Enter (so is a real line end), `\\t` Tab, `\\e` Escape (`\\e[A` is the up arrow), `\\xHH` any control key (`\\x03` is
    Ctrl-C), `\\\\` a backslash. Errors: ToolError for another escape.
    """
    return _ESCAPE.sub(_key, text.replace("\r\n", "\r").replace("\n", "\r")).encode("utf-8", "replace")


def typed_lines(text: str) -> str:
    """What is typed as lines of text, for whoever judges it; what holds an unknown escape, and is never typed, as it is."""
    try:
        return typed(text).decode(errors="replace").replace("\r", "\n")
    except ToolError:
        return text


def _key(match: re.Match[str]) -> str:
    name = match[1]
    if name.startswith("x") and len(name) == 3:
        return chr(int(name[1:], 16))
    if name not in _KEYS:
        raise ToolError(
            f"`input` holds the unknown escape {match[0]!r}: there are \\n (Enter), \\t, \\e (Escape), \\xHH "
            "(a control key, \\x03 is Ctrl-C) and \\\\ (a backslash)."
        )
    return _KEYS[name]
