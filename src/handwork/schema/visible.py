"""Text without what nobody sees and something reads all the same: invisible tags, direction controls, smuggled bits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice

_TAGS = "\U000e0000-\U000e007f"
_BIDI = "\u202a-\u202e\u2066-\u2069"
_VOID = "\u2065\u206a-\u206f\ufff0-\ufffb\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
"""Shown by nothing and needed by no script: deprecated, unassigned, annotations of lines."""
_DIRECTION = "\u061c\u200e\u200f"
"""Marks of direction. They are honest: only with them do numbers and punctuation stand right beside Hebrew or Arabic, and unlike
the controls they cannot reorder anything that has a direction of its own."""
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_OTHERS = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064\u3164\ufeff\uffa0"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
INVISIBLE = f"{_TAGS}{_BIDI}{_VOID}{_DIRECTION}{_SELECTORS}{_OTHERS}"
"""All of these, as they stand between the brackets of a pattern."""

_RUN = re.compile(f"[{INVISIBLE}]+")
_NEVER = re.compile(f"[{_TAGS}{_BIDI}{_VOID}]+")
_LONGEST = 3
"""Joiners that an honest text has in a row (<joiner, non-joiner, joiner> in Arabic); in more of them somebody counts bits."""
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_NOT_SHOWN = re.compile(f"{_RUN.pattern}|{_CONTROLS.pattern}")
_FLAG = "\U0001f3f4"
_FLAGS = tuple(
    "".join(chr(0xE0000 + ord(char)) for char in region) + "\U000e007f" for region in ("gbeng", "gbsct", "gbwls")
)
"""What follows the black flag in those of England, Scotland and Wales: the only flags that are written with tags."""

_HAN = "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_JOINING = "\u0590-\u109f\u1200-\u1aff\u1b00-\u1cff\ua800-\uabff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00011fff\U0001e800-\U0001efff"
_EMOJI = "\u2100-\u32ff\U0001f000-\U0001faff"
_SHOWN_TWO_WAYS = "#*0-9\u00a9\u00ae\u203c\u2049\u2100-\u32ff\U0001f000-\U0001faff"
_WITHOUT_SPACES = f"\u0e00-\u0fff\u1000-\u109f\u1700-\u17ff\u1950-\u1aaf\u1b00-\u1cff\ua980-\uaaff{_HAN}\uac00-\ud7ff"
_VARIED = f"0\u2200-\u22ff\u2a00-\u2aff\u1000-\u109f\uaa60-\uaa7f\ua840-\ua877\uff01-\uff60{_HAN}\U00010ac0-\U00010aff\U00013000-\U0001342f"
_MONGOLIAN = "\u1800-\u18af\U00011660-\U0001167f"
_JAMO = "\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff"


@cache
def _among(characters: str) -> re.Pattern[str]:
    """One of these characters. Compiling the larger ranges takes longer than a start should, and most texts need none."""
    return re.compile(f"[{characters}]")


def without_hidden(text: str) -> str:
    """The text without invisible characters that are no part of an honest spelling.

    Left out are tags (but in the three flags that are written with them), controls that reorder what a person reads, selectors
    and joiners where no script has them, and long rows of any of them. Joiners of Arabic, Indic and emoji, selectors of variants,
    word breaks of Thai and Khmer and marks of direction stay. Doing it twice changes nothing more; the time is linear.
    """
    if _hides_nothing(text):
        return text
    return _RUN.sub(partial(_honest, text), text)


@dataclass(frozen=True, slots=True)
class Seen:
    """A text as it may be read, and what was done to it.

    text: without hidden characters; control characters stand there as signs (␛ for escape).
    note: one sentence for people; '' if nothing was done.
    """

    text: str
    note: str = ""

    @property
    def note_with_advice(self) -> str:
        """The note for a model, which can look at the text exactly; '' if nothing was done."""
        return f"{self.note} {_EXACTLY}" if self.note else ""


_EXACTLY = "To see the text exactly, print ascii() of it in Python, or use bash: cat -A."


def seen(text: str) -> Seen:
    """What a model is given of a text that somebody else wrote, with a sentence on what it does not see of it."""
    if _is_plain(text):
        return Seen(text)
    signed = _CONTROLS.sub(_sign, text)
    cleaned = without_hidden(signed)
    if cleaned is text or cleaned == text:
        return Seen(text)
    found = [f"U+{code:04X}{times}{lines}" for code, times, lines in _told(text)]
    more = f" and {len(found) - _MOST} other kinds" if len(found) > _MOST else ""
    what = f"{', '.join(found[:_MOST])}{more}"
    return Seen(
        cleaned,
        f"Characters that cannot be seen are left out, or stand there as a sign ({what}).",
    )


def _is_plain(text: str) -> bool:
    """Whether nothing in a text needs a closer look; of most texts this is known soon."""
    return not _CONTROLS.search(text) and _hides_nothing(text)


def _hides_nothing(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return not _RUN.search("".join(set(text)))  # a text has few different characters
    return "\u00ad" not in text


_MOST = 8
_ENOUGH = 10_000
"""Of so many it is told where they stand."""


def _told(text: str) -> Iterator[tuple[int, str, str]]:
    """Each kind of character that is not shown as it is: how often it stands there, and in which lines first."""
    places: dict[str, list[int]] = {}
    line, counted = 1, 0
    for at, char in islice(_changed(text), _ENOUGH):
        line, counted = line + text.count("\n", counted, at), at
        places.setdefault(char, []).append(line)
    for char, lines in places.items():
        first = list(dict.fromkeys(lines))
        shown = ", ".join(map(str, first[:3])) + (", …" if len(first) > 3 else "")
        yield ord(char), f" × {len(lines)}" if len(lines) > 1 else "", f" in line {shown}"


def _changed(text: str) -> Iterator[tuple[int, str]]:
    """Place and character of all that is left out or stands as a sign, in order."""
    for run in _NOT_SHOWN.finditer(text):
        kept = "" if _CONTROLS.match(run[0]) else _honest(text, run)
        for at, char in enumerate(run[0], run.start()):
            if kept and kept[0] == char:
                kept = kept[1:]
            else:
                yield at, char


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def _honest(text: str, found: re.Match[str]) -> str:
    """What stays of one row of invisible characters, by the characters before and behind it."""
    run, begin, end = found[0], found.start(), found.end()
    before, behind = text[begin - 1 : begin] if begin else "", text[end : end + 1]
    flag = next((tags for tags in _FLAGS if run.startswith(tags)), "") if before == _FLAG else ""
    rest = _NEVER.sub("", run[len(flag) :])
    if len(rest) > _LONGEST:
        rest = rest[:1]
    kept = ""
    for char in rest:
        if _belongs(char, before, behind) and not (kept and _is_selector(char)):
            kept += char
    return flag + kept


def _is_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or char >= "\U000e0100"


def _belongs(char: str, before: str, behind: str) -> bool:
    """Whether an honest text has this character between those two."""
    match char:
        case "\u200c" | "\u200d":
            joins = _among(_JOINING).match(before) or _among(_JOINING).match(behind)
            return bool(joins or (char == "\u200d" and _among(_EMOJI).match(before) and _among(_EMOJI).match(behind)))
        case "\u200b":
            return bool(_among(_WITHOUT_SPACES).match(before) or _among(_WITHOUT_SPACES).match(behind))
        case "\ufeff":
            return before in ("", "\n")
        case "\u00ad" | "\u034f":
            return before.isalpha() or bool(_among(_JOINING).match(before))
        case "\ufe0e" | "\ufe0f":
            return bool(_among(_SHOWN_TWO_WAYS).match(before))
        case "\u115f" | "\u1160":
            return bool(_among(_JAMO).match(before) or _among(_JAMO).match(behind))
    if "\ufe00" <= char <= "\ufe0d":
        return bool(_among(_VARIED).match(before))
    if "\u180b" <= char <= "\u180f":
        return bool(_among(_MONGOLIAN).match(before))
    if char >= "\U000e0100":
        return bool(_among(_HAN).match(before))
    return True
