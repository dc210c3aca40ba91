"""Nothing that a model or a tool says acts on the terminal, and honest texts of every script are untouched."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handwork.cli.clean import (
    StreamCleaner,
    clean_for_terminal,
    fold,
    fold_end,
    fold_middle,
    json_for_terminal,
    one_line,
    show_exactly,
)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("\x9b31mred", "red"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]0;new title\x1b\\text", "text"),
        ("\x1b]52;c;Y29weQ==\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP+q544e\x1b\\text", "text"),
        ("\x9d0;title\x9ctext", "text"),
        ("\x1b]0;never ended text", "0;never ended text"),
        ("\x1bctext", "text"),
        ("\x1b(0text", "text"),
        ("a\x00b\x07c\x08d\x7fe", "abcde"),
        ("50%\r100%\r\ndone", "50%\n100%\ndone"),
        ("a\x85b\u2028c\x0cd", "a\nb\nc\nd"),
        ("access\u202egpj.exe\u202c", "accessgpj.exe"),
        ("\u2066if admin\u2069", "if admin"),
        ("hi\U000e0069\U000e0067\U000e006e\U000e006f\U000e0072\U000e0065", "hi"),
        ("x" + "\U000e0100\U000e0101\U000e0102", "x"),
        ("a\ud800b", "ab"),
        ("\x1b\x1b[31mtwice", "twice"),
        ("\x1b[\x1b[31m31mnested", "31mnested"),
    ],
)
def test_what_acts_on_a_terminal_is_taken_out(raw: str, shown: str) -> None:
    assert clean_for_terminal(raw) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain text\twith a tab\nand a line",
        "مرحبا بالعالم\u200f (2024)",
        "שלום עולם",
        "نمی‌خواهم",  # a zero-width non-joiner that is part of the spelling
        "你好，世界 葛\U000e0100",
        "こんにちは",
        "สวัสดี",
        "👩‍👩‍👧‍👦 ❤️ 🏳️‍🌈",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # the flag of Scotland is written with tags
        "naïve café – “quotes” … ½ €",
    ],
)
def test_honest_texts_of_every_script_are_untouched(text: str) -> None:
    assert clean_for_terminal(text) == text
    cleaner = StreamCleaner()
    assert "".join(map(cleaner.feed, text)) + cleaner.finish() == text


ACTING = st.text(
    st.sampled_from("\x1b[]0;m\x07\\\x9b\x9d\x9cPa\r\n\x00\u202e\U000e0041\U0001f3f4\U000e007f"), max_size=40
)


@given(ACTING | st.text())
def test_nothing_acting_is_left_whatever_the_text(text: str) -> None:
    for char in clean_for_terminal(text):
        assert char in "\t\n" or unicodedata.category(char) not in ("Cc", "Cs")
        assert not "\u202a" <= char <= "\u202e"


@given(st.lists(ACTING))
def test_nothing_acting_is_left_wherever_the_pieces_are_cut(pieces: list[str]) -> None:
    cleaner = StreamCleaner()
    shown = "".join(map(cleaner.feed, pieces)) + cleaner.finish()
    assert not any(unicodedata.category(char) == "Cc" and char not in "\t\n" for char in shown)


def test_a_sequence_cut_at_any_place_leaves_no_trace() -> None:
    text = "a\x1b[1;31mred\x1b]0;title\x1b\\ b\r\nc"
    for place in range(len(text)):
        cleaner = StreamCleaner()
        assert cleaner.feed(text[:place]) + cleaner.feed(text[place:]) + cleaner.finish() == "ared b\nc"


@pytest.mark.parametrize(
    "piece", ["\x1b]", "\x9d", "\x1b[", "\x1b", "\x1bP0", "\U0001f3f4", "\U000e0041", "\U0001f3f4\U000e0067"]
)
def test_cleaning_takes_linear_time(piece: str) -> None:
    text = piece * 200_000
    clean_for_terminal(text)
    StreamCleaner().feed(text)


def test_an_approval_spells_out_everything_that_could_hide() -> None:
    assert show_exactly("rm -rf ./a\u200b\u202e\x1b[2K\tb\xa0c\r\nd") == (
        "rm -rf ./a⟨U+200B⟩⟨U+202E⟩⟨U+001B⟩[2K⟨U+0009⟩b⟨U+00A0⟩c⟨U+000D⟩\nd"
    )
    assert show_exactly("echo 'schöne Grüße 你好'") == "echo 'schöne Grüße 你好'"


@given(st.text())
def test_every_invisible_character_of_an_approval_is_spelt_out(text: str) -> None:
    for char in show_exactly(text):
        assert char in " \n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")


def test_a_long_result_is_folded_with_the_number_of_hidden_lines() -> None:
    assert fold("\n".join(map(str, range(10))), 3, 80) == "0\n1\n2\n… 7 more lines"
    assert fold("a\nb", 1, 80) == "a\n… 1 more line"
    assert fold("x" * 100, 3, 10) == "x" * 9 + "…"
    assert fold("日" * 100, 3, 10) == "日" * 4 + "…"
    assert fold("e\u0301" * 10, 3, 10) == "e\u0301" * 10
    assert fold("e\u0301" * 11, 3, 10) == "e\u0301" * 9 + "…"


def test_an_error_is_folded_from_its_end() -> None:
    assert fold_end("\n".join(map(str, range(10))), 3, 80) == "… 7 earlier lines\n7\n8\n9"
    assert fold_end("a\nb\n", 2, 80) == "a\nb"
    assert fold_end("a\n" + "x" * 100, 1, 10) == "… 1 earlier line\n" + "x" * 9 + "…"


def test_a_very_long_result_keeps_its_last_line() -> None:
    assert fold_middle("\n".join(map(str, range(6))), 3, 80) == "0\n1\n2\n… 3 more lines"
    assert fold_middle("\n".join(map(str, range(7))), 3, 80) == "0\n1\n… 4 more lines\n6"


def test_a_line_is_cut_by_columns_not_characters() -> None:
    assert one_line("a\n b\tc", 10) == "a b c"
    assert one_line("你好世界你好世界", 9) == "你好世界…"


@given(ACTING | st.text())
def test_json_on_a_terminal_is_the_same_json_and_acts_on_nothing(text: str) -> None:
    written = json.dumps({text: [text]}, ensure_ascii=False)
    shown = json_for_terminal(written)
    assert json.loads(shown) == json.loads(written)
    for char in shown:
        assert unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp")
        assert not "\u202a" <= char <= "\u202e"


def test_every_character_that_hides_or_looks_blank_is_spelt_out_in_an_approval() -> None:
    for code in range(0x110000):
        char = chr(code)
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp") and char not in " \n":
            assert show_exactly(char) == f"⟨U+{code:04X}⟩", hex(code)


@pytest.mark.parametrize(
    "pieces", [("❤", "\ufe0f", "\u200d", "🔥"), ("x", "\u200b", "\u200c", "y"), ("م", "\u200c", "م")]
)
def test_what_is_honest_is_told_by_what_follows_wherever_the_pieces_are_cut(pieces: tuple[str, ...]) -> None:
    cleaner = StreamCleaner()
    whole = "".join(pieces)
    assert "".join(map(cleaner.feed, pieces)) + cleaner.finish() == clean_for_terminal(whole)
    assert cleaner.feed("next") == "next"
