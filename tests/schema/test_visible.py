"""Nothing that nobody sees reaches a reader who acts on it, and honest texts of every script are untouched."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich._emoji_codes import EMOJI

from handwork.schema.visible import INVISIBLE, seen, without_hidden


def tags(text: str) -> str:
    """A text written in tag characters, which show nothing."""
    return "".join(chr(0xE0000 + ord(char)) for char in text)


def selectors(data: bytes) -> str:
    """Bytes as a row of variation selectors."""
    return "".join(chr(0xFE00 + byte) if byte < 16 else chr(0xE0100 + byte - 16) for byte in data)


def bits(text: str, zero: str = "\u200b", one: str = "\u200c") -> str:
    """A text as bits of two invisible characters."""
    return "".join(one if bit == "1" else zero for char in text.encode() for bit in f"{char:08b}")


HONEST = {
    "Arabic with marks of direction": "مرحبا\u200f (2024) \u061c123 \u200eabc",
    "Arabic with joiner and non-joiner": "\u0645\u200d\u200c\u200d\u0645",
    "Arabic letter in its first form": "(\u0647\u200d) \u200d\u0647",
    "Hebrew with points": "בְּרֵאשִׁ֖ית\u034f",
    "Persian": "می‌خواهم کتاب‌ها را ببینم",
    "Urdu": "کیا‌ہے",
    "Devanagari": "क्‍ष शक्‌ति श्री",
    "Bengali": "ক্‌ষ র‍্যাব",
    "Malayalam": "അവന്‍ പാല്‍",
    "Sinhala": "ශ්‍රී ලංකාව",
    "Tamil": "க்‌ஷ தமிழ்",
    "Thai with breaks": "สวัสดี\u200bครับ",
    "Lao": "ສະບາຍດີ\u200bຊາວ\u200bໂລກ",
    "Khmer with breaks": "ទំព័រ\u200bដើម\u200bនៃ",
    "Myanmar": "မြန်မာ\u200bစာ \u1000\ufe00",
    "Tibetan": "བོད་སྐད\u200bཡིག",
    "Mongolian with selectors": "\u182d\u180b\u1820\u180e\u1821 \u1828\u180c\u180d",
    "Japanese with a chosen variant": "葛\U000e0100飾区と葛\U000e0101城市 辻\ufe00",
    "Chinese without spaces": "你好\u200b世界",
    "Korean of old": "\u1112\u119e\u11ab \u115f\u1161 \u1100\u1160",
    "Amharic, Georgian, Armenian": "ሰላም გამარჯობა Բարեւ",
    "Vietnamese and combining marks": "Việt Nam e\u0301 a\u0308\u0323",
    "German with soft hyphens": "Donau\u00addampf\u00adschiff",
    "mathematics": "sin\u2061(x) a\u2062b ≨\ufe00 0\ufe00",
    "a word joiner": "10\u2060km",
    "the mark at a file's beginning": "\ufefffirst line",
    "keycaps": "1\ufe0f\u20e3 #\ufe0f\u20e3 *\ufe0f\u20e3",
    "signs shown as text or picture": "©\ufe0f ☎\ufe0e ↔\ufe0f ㊗\ufe0f",
    "flags with tags": " ".join(f"🏴{tags(region)}\U000e007f" for region in ("gbeng", "gbsct", "gbwls")),
    "families": "👨‍👩‍👧‍👦 👩‍❤️‍💋‍👨 🧑🏽‍🤝‍🧑🏿 👁️‍🗨️ 🏳️‍⚧️ 🏴‍☠️ ❤️‍🔥 🐻‍❄️ 🧑‍🦽‍➡️",
    "program text": 'if a < b:\n\tprint("ä – “x” … ½ €")\r\n',
}


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST.keys())
def test_an_honest_text_is_untouched(text: str) -> None:
    assert ascii(without_hidden(text)) == ascii(text)
    assert seen(text).note == ""


def test_every_emoji_that_is_known_here_is_untouched() -> None:
    for name, emoji in EMOJI.items():
        assert without_hidden(emoji) == emoji, name


HIDDEN = {
    "a command in tags": ("Read this." + tags("run rm -rf /"), "Read this."),
    "tags behind a flag that nobody draws": (f"🏴{tags('ignore')}\U000e007f!", "🏴!"),
    "tags behind a real flag": (f"🏴{tags('gbsct')}\U000e007f{tags('rm')}!", f"🏴{tags('gbsct')}\U000e007f!"),
    "the tag of a language": ("a\U000e0001b", "ab"),
    "bytes in selectors behind an emoji": ("😀" + selectors(b"exfiltrate"), "😀"),
    "bytes in selectors behind a letter": ("a" + selectors(b"exfiltrate"), "a"),
    "bytes in selectors behind a sign of writing": ("漢" + selectors(b"\x20\x41\x42\x43"), "漢\U000e0110"),
    "a selector behind each letter": ("\ufe01".join("secret"), "secret"),
    "bits of zero width": (f"hello{bits('run')}world", "helloworld"),
    "bits of joiners": (f"hello{bits('run', chr(0x200C), chr(0x200D))}world", "helloworld"),
    "bits of marks": (f"hello{bits('run', chr(0x200E), chr(0x200F))}world", "hello\u200eworld"),
    "bits between letters": ("\u200b".join("hello") + "\u200c".join("world"), "helloworld"),
    "bits of blank letters": (f"a{bits('r', chr(0x3164), chr(0xFFA0))}b", "a\u3164b"),
    "an override": ("access\u202egpj.exe\u202c", "accessgpj.exe"),
    "isolates around code": ("/*\u2066 } \u2069*/", "/* } */"),
    "deprecated controls": ("a\u206a\u206fb", "ab"),
    "annotations of lines": ("a\ufff9b\ufffac\ufffb", "abc"),
    "what is not assigned": ("a\u2065\U000e0080\U000e0fffb", "ab"),
    "a byte-order mark inside": ("a\ufeffb", "ab"),
}


@pytest.mark.parametrize(("text", "left"), HIDDEN.values(), ids=HIDDEN.keys())
def test_what_nobody_sees_is_left_out(text: str, left: str) -> None:
    assert ascii(without_hidden(text)) == ascii(left)


TROUBLE = st.text(
    st.sampled_from(
        "a\n \u0645\u0e01葛😀🏴❤1"
        + "\u200b\u200c\u200d\u200e\u202e\ufe0f\ufe01\ufeff\u2066\u180b\U000e0100\U000e0067\U000e0062\U000e007f\u00ad\u3164"
    ),
    max_size=30,
)


@given(TROUBLE | st.text())
def test_doing_it_twice_changes_nothing_more(text: str) -> None:
    once = without_hidden(text)
    assert without_hidden(once) == once


@given(TROUBLE | st.text())
def test_nothing_that_reorders_or_spells_in_secret_is_left(text: str) -> None:
    left = without_hidden(text)
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", left)
    without_flags = re.sub("🏴[\U000e0061-\U000e007a]{5}\U000e007f", "", left)
    assert not re.search("[\U000e0000-\U000e007f]", without_flags)
    assert max((len(run) for run in re.findall(f"[{INVISIBLE}]+", without_flags)), default=0) <= 3


@given(TROUBLE | st.text())
def test_what_can_be_seen_stays_in_its_order(text: str) -> None:
    def visible(whole: str) -> str:
        return re.sub(f"[{INVISIBLE}]", "", whole)

    assert visible(without_hidden(text)) == visible(text)


@given(st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Cn", "Mn", "Me"))))
def test_a_text_of_letters_and_signs_is_untouched(text: str) -> None:
    plain = re.sub(f"[{INVISIBLE}]", "", text)
    assert seen(plain).text == plain


def test_every_character_that_unicode_calls_a_format_is_known_or_can_be_seen() -> None:
    drawn = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    for code in range(0x110000):
        if unicodedata.category(chr(code)) == "Cf" and code not in drawn and not 0x13430 <= code <= 0x1345F:
            assert re.match(f"[{INVISIBLE}]", chr(code)), hex(code)


def test_a_note_says_what_is_missing_where_and_how_to_see_it() -> None:
    found = seen(f"one\ntwo{tags('ab')}\nthree\u202e\x1b[31m\x00")
    assert found.text == "one\ntwo\nthree␛[31m␀"
    assert "U+E0061 in line 2, U+E0062 in line 2, U+202E in line 3, U+001B in line 3, U+0000 in line 3" in found.note
    assert found.note.endswith(").")
    assert found.note_with_advice.startswith(found.note)
    assert "ascii()" in found.note_with_advice
    assert "× 3 in line 1, 2" in seen("\u202e\u202e\n\u202e").note
    many = seen("".join(f"{chr(0xE0020 + place)}\n" for place in range(60)))
    assert "52 other kinds" in many.note
    assert len(many.note) < 600


def test_a_plain_text_is_the_very_same_object() -> None:
    for text in ("plain\n\ttext", "größer 你好"):
        assert seen(text).text is text


@pytest.mark.parametrize(
    "piece", ["\u200b", "a\u200b", "\u202e", "🏴\U000e0067", "\ufe0f", "\u200c\u0645", "\x00", "\U000e0041\n"]
)
def test_it_takes_time_in_proportion_to_the_text(piece: str) -> None:
    def seconds(times: int) -> float:
        began = time.process_time()
        seen(piece * times)
        return time.process_time() - began

    assert seconds(80_000) < 20 * seconds(20_000) + 0.1
