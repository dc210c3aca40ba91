"""Text of models and tools made safe to show: nothing in it acts on the terminal or hides from the reader."""

from __future__ import annotations

import json
import re

from handwork.cli.columns import fit
from handwork.schema.visible import INVISIBLE, without_hidden

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, screen
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS …: title, clipboard
    r"|\x1b[ -/]*[0-~]"  # two-character sequences, and the beginning of a broken one
)
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_ACTING = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but tab and newline, and halves of characters."""
_BEGUN = re.compile(
    r"(?:\x1b[ -/]*|(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*\x1b?"
    rf"|\r|(?<![{INVISIBLE}])[{INVISIBLE}]+)\Z"
)
_LONGEST = 4096
_MARKS = re.compile(
    "[^\\S\n ]"  # blanks that are no plain space
    "|[\x00-\x09\x0b-\x1f\x7f-\x9f\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u2028-\u202e\u2060-\u206f\u2800\ud800-\udfff"
    f"\U000110bd\U000110cd\U00013430-\U0001343f{INVISIBLE}]"
)
_IN_JSON = re.compile(f"[\x7f-\x9f\u2028\u2029\ud800-\udfff{INVISIBLE}]")


def clean_for_terminal(text: str) -> str:
    """The text without what a terminal would act on: escape sequences, control characters, bidi overrides, invisible tags.

    Line ends become newlines. Letters of every script, their joiners and direction marks, and emoji stay as they are (see
    `schema.visible`). Takes time linear in the text's length.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_ENDS.sub("\n", _ESCAPES.sub("", text))
    return without_hidden(_ACTING.sub("", text))


def show_exactly(text: str) -> str:
    """The text with everything that could hide or mislead spelt out, as ⟨U+202E⟩: what stands here is what will run.

    Only newlines and plain spaces stay invisible.
    """
    return _MARKS.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def json_for_terminal(text: str) -> str:
    """The same JSON with escapes in the place of what would act on a terminal, or hide: JSON itself escapes only a part of that."""
    return (
        text if text.isascii() and "\x7f" not in text else _IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)
    )


def one_line(text: str, limit: int) -> str:
    """Clean text on one line, cut after `limit` columns (a wide character takes two)."""
    text = " ".join(clean_for_terminal(text[: 8 * limit]).split())
    return fit(text, limit)


def fold(text: str, lines: int, columns: int) -> str:
    """The first lines of a clean text, each cut to the width, and a note that says how many more there are."""
    rows = _rows(text)
    shown = _cut(rows[:lines], columns)
    if len(rows) > lines:
        shown.append(_more(len(rows) - lines))
    return "\n".join(shown)


def fold_end(text: str, lines: int, columns: int) -> str:
    """Like fold, but with the last lines: where an error says what is wrong."""
    rows = _rows(text)
    if len(rows) <= lines:
        return "\n".join(_cut(rows, columns))
    return "\n".join((_more(len(rows) - lines, "earlier"), *_cut(rows[-lines:], columns)))


def fold_middle(text: str, lines: int, columns: int) -> str:
    """Like fold; of a text that is more than twice as long the last line is shown too, since it often holds the sum."""
    rows = _rows(text)
    if len(rows) <= 2 * lines:
        return fold(text, lines, columns)
    return "\n".join((*_cut(rows[: lines - 1], columns), _more(len(rows) - lines), *_cut(rows[-1:], columns)))


def _rows(text: str) -> list[str]:
    return clean_for_terminal(text).strip("\n").expandtabs(4).split("\n")


def _cut(rows: list[str], columns: int) -> list[str]:
    return [fit(row, columns) for row in rows]


def _more(lines: int, which: str = "more") -> str:
    return f"… {lines:,} {which} line{'s' if lines > 1 else ''}"


class StreamCleaner:
    """Cleans text that arrives in pieces: an escape sequence may be cut at any character."""

    def __init__(self) -> None:
        self._held = self._last = ""

    def feed(self, piece: str) -> str:
        """What can be shown now; what may be the beginning of a sequence is held back until it is whole."""
        text = self._held + piece
        self._held = ""
        if (begun := _BEGUN.search(text)) and len(begun[0]) <= _LONGEST:
            text, self._held = text[: begun.start()], begun[0]
        return self._cleaned(text)

    def finish(self) -> str:
        """What was held back, as far as it can be shown."""
        held, self._held = self._held, ""
        shown, self._last = self._cleaned(held), ""
        return shown

    def _cleaned(self, text: str) -> str:
        before = self._last  # whether a joiner or a selector is honest, the letter before it tells
        shown = clean_for_terminal(before + text)[len(before) :]
        self._last = (before + shown)[-1:]
        return shown
