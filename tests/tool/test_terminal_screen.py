"""The terminal's screen: what programs draw is shown as a person would see it."""

from __future__ import annotations

import pytest

from handwork.tool.terminal_screen import Screen


def drawn(text: str, columns: int = 20, rows: int = 5) -> Screen:
    screen = Screen(columns, rows)
    screen.feed(text.encode())
    return screen


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\nb", "a\nb"),
        ("abc\rX", "Xbc"),
        ("abc\b\b-", "a-c"),
        ("a\tb", "a       b"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link", "xlink"),
        ("one\x1b[2;3Htwo", "one\n  two"),
        ("abc\x1b[2D\x1b[K", "a"),
        ("a\r\nb\r\nc\x1b[2;1H\x1b[J", "a"),
        ("abcdef\x1b[3G\x1b[2P", "abef"),
        ("abc\x1b[1G\x1b[2@", "  abc"),
        ("abcd\x1b[2G\x1b[2X", "a  d"),
        ("a\r\nb\r\nc\x1b[2;1H\x1b[L", "a\n\nb\nc"),
        ("a\r\nb\r\nc\x1b[2;1H\x1b[M", "a\nc"),
        ("\x1b(0lqk\x1b(Bx", "┌─┐x"),
        ("ab\x1b7\x1b[3;3Hz\x1b8c", "abc\n\n  z"),
        ("-\x1b[5b", "------"),
        ("漢字\b\b!", "漢!"),
        ("e\u0301x", "e\u0301x"),
        ("\x1b[4hab\x1b[1Gc", "cab"),
        ("\x1b[2;3r\x1b[2;1Ha\r\nb\r\nc\x1b[1;1Ht", "t\nb\nc"),
        ("a\x1b[2Jb", " b"),
        ("x" * 25, "x" * 25),
        ("a\x1bcb", "b"),
    ],
)
def test_sequences_do_what_a_terminal_does(text: str, shown: str) -> None:
    assert drawn(text).grid.shown() == shown


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_sequence_may_be_cut_anywhere(size: int) -> None:
    data = "ü\x1b[31mred\x1b[0m\x1b]0;t\x1b\\\x1b(B漢\x1b[2;3Hz".encode()
    screen = Screen(20, 5)
    for at in range(0, len(data), size):
        screen.feed(data[at : at + size])
    assert screen.grid.shown() == "üred漢\n  z"


def test_only_what_changed_is_fresh_and_lines_above_the_screen_are_not_lost() -> None:
    screen = drawn("first\r\n$ ")
    assert screen.grid.fresh() == ("first\n$", 0)
    assert screen.grid.fresh() == ("", 0)
    screen.feed(b"ls\r\n" + b"".join(b"%d\r\n" % n for n in range(20)) + b"$ ")
    assert screen.grid.fresh() == ("$ ls\n" + "\n".join(map(str, range(20))) + "\n$", 0)


def test_more_lines_than_are_kept_are_counted() -> None:
    screen = Screen(20, 5)
    screen.feed(b"".join(b"%d\r\n" % n for n in range(5000)))
    text, lost = screen.grid.fresh()
    assert lost + text.count("\n") + 1 == 5000
    assert text.endswith("4998\n4999")


def test_the_second_screen_is_shown_whole_and_gone_afterwards() -> None:
    screen = drawn("before\r\n")
    screen.grid.fresh()
    screen.feed(b"\x1b[?1049h\x1b[Hone\r\ntwo")
    assert screen.grid.fresh() == ("one\ntwo", 0)
    screen.feed(b"\x1b[1;1HX")
    assert screen.grid.fresh() == ("Xne\ntwo", 0)
    screen.feed(b"\x1b[?1049l")
    assert screen.grid.shown() == "before"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("ab\x1b[6n", b"\x1b[1;3R"),
        ("\x1b[5n", b"\x1b[0n"),
        ("\x1b[c", b"\x1b[?1;2c"),
        ("\x1b[>c", b"\x1b[>0;10;1c"),
        ("\x1b[?25n", b""),
    ],
)
def test_questions_to_the_terminal_are_answered(question: str, answer: bytes) -> None:
    assert drawn(question).replies == answer


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[999999999A\x1b[999999999B\x1b[99999C\x1b[99999D",
        "\x1b[;H\x1b[0;0r\x1b[9;2r",
        "\x1b[99999L\x1b[99999M\x1b[99999S\x1b[99999T",
        "\x1b[99999@\x1b[99999P\x1b[99999X\x1b[99999b",
        "\x1b[1;2;3;4;5;6;7;8;9z\x1b[?99999h",
        "\u0301\x9b1\x00\x7f\x85",
        "\x1b]" + "x" * 10_000,
    ],
)
def test_no_sequence_breaks_it(text: str) -> None:
    screen = drawn(text + "\x1b[H\x1b[Kok" * 3)
    assert len(screen.grid.rows) == 5
    assert all(len(row.cells) <= 20 for row in screen.grid.rows)
