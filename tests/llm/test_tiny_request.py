"""What the host does with a request's text."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handwork.llm.local.tiny_request import (
    append_code,
    first_line,
    numbers_in,
    paths_in,
    split_request,
    unquoted,
    words_in,
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Read a.txt", ["Read a.txt"]),
        ("Do A, then do B", ["Do A", "do B"]),
        ("Do A and then B; then C. Then D", ["Do A", "B", "C", "D"]),
        ("Do A. After that, do B. Finally, do C", ["Do A", "do B", "do C"]),
        ("1. Do A\n2. Do B\n- Do C", ["Do A", "Do B", "Do C"]),
        ("Write 'first, then second' to a.txt", ["Write 'first, then second' to a.txt"]),
        ('Write {"a": "x, then y"} to a.json', ['Write {"a": "x, then y"} to a.json']),
        ("Write cats and dogs to a.txt", ["Write cats and dogs to a.txt"]),
        ("  ", []),
    ],
)
def test_requests_are_cut_at_then_and_the_like(text: str, parts: list[str]) -> None:
    assert split_request(text) == parts


@given(st.text(max_size=200))
def test_cutting_loses_no_words_but_the_joints(text: str) -> None:
    kept = "".join(split_request(text))
    assert len(kept) <= len(text)
    assert set(kept) <= set(text)


def test_file_names_are_found_and_sentences_are_not() -> None:
    text = "Write Hi. to notes.txt and sub/b-2.tar.gz, not 3.5 or e.g. this; end with x.py."
    assert [path for path in paths_in(text) if path != "e.g"] == ["notes.txt", "sub/b-2.tar.gz", "x.py"]


def test_numbers_in_file_names_are_none() -> None:
    assert numbers_in("add 3 and 4.5 to v2.txt, 3 times") == ["3", "4.5"]


@given(st.text(max_size=100))
def test_words_never_overlap_and_stay_inside(text: str) -> None:
    spans = words_in(text)
    assert all(begin < end for begin, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))


@pytest.mark.parametrize(
    ("text", "bare"),
    [("'a b'", "a b"), ('"x"', "x"), ("'a' and 'b'", "'a' and 'b'"), ("it's", "it's"), ("''", "''"), ("“q”", "q")],
)
def test_one_pair_of_quotes_around_all_is_dropped(text: str, bare: str) -> None:
    assert unquoted(text) == bare


def test_an_error_is_told_by_its_last_line_when_it_is_a_traceback() -> None:
    framed = (
        "Observed output of cmd `python_execute` executed:\nTraceback (most recent call last):\n  x\nValueError: no"
    )
    assert first_line(framed) == "ValueError: no"
    assert first_line("Error: one\ntwo") == "Error: one"
    assert first_line("") == "no reason was given"


@pytest.mark.parametrize(
    ("before", "after"), [("a", "a\nb's\n"), ("a\n", "a\nb's\n"), ("", "b's\n"), ("ä\r\n", "ä\r\nb's\n")]
)
def test_a_line_is_added_after_what_the_file_holds(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "x.txt"
    path.write_bytes(before.encode())
    exec(append_code(str(path), "b's"), {})
    assert path.read_bytes().decode() == after


def test_a_line_is_never_added_to_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        exec(append_code(str(tmp_path / "x.txt"), "b"), {})
    assert list(tmp_path.iterdir()) == []
