"""Lines at the edge of a terminal: measured in columns, cut, and broken between words."""

from __future__ import annotations

import time

import pytest

from handwork.cli.columns import fit, padded, width, wrapped


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("👩\u200d", 2), ("", 0), ("﹅ａ", 4)],
)
def test_the_width_of_a_text(text: str, columns: int) -> None:
    assert width(text) == columns
    assert width(padded(text, 6)) == 6


@pytest.mark.parametrize("columns", range(1, 9))
def test_a_cut_line_fits_with_its_mark(columns: int) -> None:
    for text in ("abcdefghi", "漢字漢字漢字", "a漢b字c漢", "e\u0301" * 20):
        assert width(fit(text, columns)) <= columns


@pytest.mark.parametrize("text", ["", "short", "  │ code", "a" * 20, " " * 20])
def test_what_fits_stays_as_it_is(text: str) -> None:
    assert wrapped(text, 20) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one two three four five", "one two three four\nfive"),
        ("· one two three four five", "· one two three\n  four five"),
        ("  ✗ one two three four five", "  ✗ one two three\n    four five"),
        ("1. one two three four five", "1. one two three\n   four five"),
        ("    one two three four five", "    one two three\n    four five"),
        ("  /x    one two three four", "  /x    one two\n        three four"),
        ("漢字漢字漢字漢字漢、字 ab", "漢字漢字漢字漢字\n漢、字 ab"),
        ("see it `one two three` now", "see it\n`one two three` now"),
        ("see `one two three four five six`", "see `one two three\nfour five six`"),
        ("first line\n· one two three four five", "first line\n· one two three\n  four five"),
    ],
)
def test_a_line_is_broken_between_words_below_its_beginning(text: str, shown: str) -> None:
    assert wrapped(text, 20) == shown


def test_a_word_wider_than_the_line_and_a_command_to_type_stay_whole() -> None:
    path = "/a" * 30
    assert wrapped(f"· see {path} there", 20) == f"· see\n  {path}\n  there"
    assert wrapped(f"→ {path}", 20) == f"→ {path}"
    command = "handwork run --session x 'go on with it'"
    assert wrapped(f"→ To go on: {command}", 20) == f"→ To go on:\n  {command}"
    assert wrapped(f"To go on: ../.venv/bin/{command}", 20) == f"To go on:\n../.venv/bin/{command}"


def test_what_will_run_loses_nothing_and_a_row_that_goes_on_does_not_look_like_a_line_of_its_own() -> None:
    for code in (
        "rm -rf   a b c d e f g h i j k l",
        "漢字" * 20,
        " " * 50 + "evil",
        "`a b c d e f g h i j k`: handwork x",
    ):
        rows = wrapped(f"  │ {code}", 20).split("\n")
        assert len(rows) > 1
        assert [row[:4] for row in rows] == ["  │ ", *["  ┊ "] * (len(rows) - 1)]
        assert all(width(row) <= 20 for row in rows)
        assert "".join(row[4:] for row in rows) == code


@pytest.mark.parametrize("columns", [20, 21, 80, 200])
def test_no_row_is_wider_than_the_terminal_where_the_words_are_not(columns: int) -> None:
    text = " ".join(("word", "漢字", "e\u0301e\u0301", "-", "`a b`", "and: more")) * 40
    for mark in ("", "· ", "    ", "  key    ", "  ⎿ "):
        rows = wrapped(mark + text, columns).split("\n")
        assert max(map(width, rows)) <= columns
        assert " ".join(" ".join(rows).split()).replace(" ", "") == (mark + text).replace(" ", "")


def test_long_texts_take_linear_time() -> None:
    began = time.monotonic()
    for text in ("a" * 300_000, "` " * 150_000, ": " * 150_000, "a: " * 100_000, "漢" * 200_000, "a  b" * 80_000):
        wrapped(text, 80)
    assert time.monotonic() - began < 10
