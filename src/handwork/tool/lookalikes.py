"""Characters that look like others: what a text would be if each were the plain one that it looks like."""

from __future__ import annotations

import re
import unicodedata

INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U000e0000-\U000e0fff"
)
"""What takes no place on the screen, as the inside of a class of characters."""
_UNSEEN = re.compile(f"[{INVISIBLE}]")
_LIKE = str.maketrans(
    # Cyrillic, Greek and Armenian letters that most fonts draw as a Latin one, then marks of typography and mathematics
    "асеорухіјѕһԁԛԝАВЕКМНОРСТУХІЈЅҮԌԜ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανρικ" + "օսհոԼ"
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043" + "‘’‛′ʹʼˈ" + "“”‟″" + "\u2044\u2215\u29f8" + "\u2216" + "\u037e"
    "\ua789\u02d0\u2236" + "\u2223\u01c0\u2758" + "\u201a" + "\u2024" + "\u2217" + "\u223c\u02dc" + "‹›" + "\u2028\u2029",
    "aceopyxijshdqwABEKMHOPCTYXIJSYGW" + "ABEZHIKMNOPTYXoavpik" + "ouhnL"
    "--------" + "'''''''" + '""""' + "///" + "\\" + ";"
    ":::" + "|||" + "," + "." + "*" + "~~" + "<>" + "  ",
)  # fmt: skip


def skeleton(text: str) -> str:
    """The text as a reader takes it: without invisible characters, wide and composed forms as plain ones, look-alikes as ASCII.

    Line ends stay, so lines keep their numbers. Takes time linear in the text's length.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).translate(_LIKE)


def described(character: str) -> str:
    """A character with its number and name: `U+2019 RIGHT SINGLE QUOTATION MARK`."""
    if character == "\n":
        return "the line's end"
    name = unicodedata.name(character, "TABULATION" if character == "\t" else "")
    return f"U+{ord(character):04X} {name}".rstrip()
