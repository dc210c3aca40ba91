"""Text of models and tools made safe to show: nothing in it acts on the terminal or hides from the reader."""

from __future__ import annotations

import re

from handwork.cli.columns import fit

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, screen
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS …: title, clipboard
    r"|\x1b[ -/]*[0-~]"  # two-character sequences, and the beginning of a broken one
)
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_ACTING = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f"  # control characters but tab and newline
    "\u202a-\u202e\u2066-\u2069"  # bidi embeddings, overrides and isolates; the marks of honest texts stay
    "\ud800-\udfff\ufff9-\ufffb]"  # lone surrogates, interlinear annotation
)
_BEGUN = re.compile(
    r"(?:\x1b[ -/]*|(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*\x1b?"
    "|\r|\U0001f3f4[\U000e0030-\U000e007a]*)\\Z"
)
_LONGEST = 4096
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f"
_TAGS = re.compile(f"({_FLAG})|[\U000e0000-\U000e007f]")  # tags spell out regional flags; elsewhere they only hide text
_LETTER = "[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_SELECTORS = f"({_LETTER})?([\U000e0100-\U000e01ef]+)"
_MARKS = re.compile(
    "[^\\S\n ]"  # blanks that are no plain space
    "|[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff\U0001d173-\U0001d17a]"
)


def clean_for_terminal(text: str) -> str:
    """The text without what a terminal would act on: escape sequences, control characters, bidi overrides, invisible tags.

    Line ends become newlines. Letters of every script, their joiners and direction marks, and emoji stay as they are.
    Takes time linear in the text's length.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_ENDS.sub("\n", _ESCAPES.sub("", text))
    text = _ACTING.sub("", text)
    if text.isascii():
        return text
    text = _TAGS.sub(lambda found: found[1] or "", text)
    return re.sub(_SELECTORS, lambda found: found[1] + found[2][0] if found[1] else "", text)


def show_exactly(text: str) -> str:
    """The text with everything that could hide or mislead spelt out, as ⟨U+202E⟩: what stands here is what will run.

    Only newlines and plain spaces stay invisible.
    """
    return _MARKS.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


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
        return self._cleaned(held)

    def _cleaned(self, text: str) -> str:
        before = self._last  # a variant's selector is honest only right after its letter
        shown = clean_for_terminal(before + text)[len(before) :]
        if text:
            self._last = shown[-1:] if re.fullmatch(_LETTER, shown[-1:]) else ""
        return shown
