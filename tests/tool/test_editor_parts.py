"""The editor's pure parts, on any input: nothing is lost in decoding, editing, diffing and taking back."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handwork.errors import ToolError
from handwork.tool import editor_history
from handwork.tool.editor_diff import changes
from handwork.tool.editor_history import Edit, EditHistory
from handwork.tool.editor_match import insert, replace
from handwork.tool.editor_show import unified
from handwork.tool.editor_text import FileText

PIECES = st.sampled_from(["a", "b", "é", "漢", "\t", " ", "\n", "\r\n", "\r", "\ufeff", "\0", "\u2028"])
TEXTS = st.lists(PIECES, max_size=30).map("".join)
BYTES = st.one_of(
    st.binary(max_size=60),
    TEXTS.map(str.encode),
    *(TEXTS.map(lambda text, name=name: text.encode(name)) for name in ("utf-16", "utf-32")),
)


@given(BYTES)
def test_any_bytes_survive_decoding(data: bytes) -> None:
    assert FileText.decode(data).encode() == data


@given(BYTES)
def test_lines_are_all_of_the_text(data: bytes) -> None:
    file = FileText.decode(data)
    assert "".join(file.lines) == file.text


@given(TEXTS)
def test_every_offset_of_the_plain_text_has_its_place(text: str) -> None:
    file = FileText.decode(text.encode())
    for offset, char in enumerate(file.plain.text):
        there = file.text[file.plain.original(offset)]
        assert there == char or (char == "\n" and there == "\r")
    assert file.plain.original(len(file.plain.text)) == len(file.text)


@settings(max_examples=300)
@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_a_replacement_changes_its_span_only(head: str, old: str, tail: str, new: str) -> None:
    before = (head + old + tail).encode()
    file = FileText.decode(before)
    try:
        edited = replace(file, old, new, "x")
    except ToolError:
        return
    after = edited.file.encode()
    edit = Edit.between(before, after)
    assert edit.fits(after)
    assert edit.undone(after) == before
    kept = len(file.text) - len(edited.file.text) + edited.end
    assert edited.file.text[: edited.start] == file.text[: edited.start]
    assert edited.file.text[edited.end :] == file.text[kept:]


@given(TEXTS, st.integers(-2, 20), TEXTS)
def test_an_insertion_leaves_all_other_lines(text: str, line: int, new: str) -> None:
    file = FileText.decode(text.encode())
    try:
        edited = insert(file, line, new, "x")
    except ToolError:
        assert not 0 <= line <= len(file.lines)
        return
    assert edited.file.text.startswith("".join(file.lines[:line]))
    assert edited.file.text.endswith("".join(file.lines[line:]))


@settings(max_examples=300)
@given(st.lists(st.sampled_from("abcdef"), max_size=30), st.lists(st.sampled_from("abcdef"), max_size=30))
def test_what_lies_between_changes_is_equal_and_a_change_is_never_empty(old: list[str], new: list[str]) -> None:
    made: list[str] = []
    at = 0
    for a, b, c, d in [*changes(old, new), (len(old), len(old), len(new), len(new))]:
        made += old[at:a]
        assert len(made) == c
        made += new[c:d]
        at = b
    assert made == new
    assert all(b > a or d > c for a, b, c, d in changes(old, new))
    assert changes(old, old) == []


def test_a_change_is_as_small_as_the_lines_around_it_allow() -> None:
    old = [f"line {n}" for n in range(40)]
    new = [*old[:5], "x", *old[5:20], *old[22:30], "y", "z", *old[31:]]
    assert changes(old, new) == [(5, 5, 5, 6), (20, 22, 21, 21), (30, 31, 29, 31)]
    assert changes(["{", "a", "}", "{", "b", "}"], ["{", "b", "}"]) == [(1, 4, 1, 1)]


@pytest.mark.skipif(shutil.which("git") is None, reason="no git on this machine to apply the diff with")
def test_a_diff_can_be_applied(tmp_path: Path) -> None:
    lines = [f"line {n}\n" for n in range(1, 60)]
    before = "".join(lines) + "no end"
    lines[3], lines[40] = "changed\n", "also\nmore\n"
    after = "new first\n" + "".join(lines)
    diff = unified(FileText(before), FileText(after), "x").text
    (tmp_path / "x").write_text(before)
    subprocess.run(["git", "apply", "-"], input=diff.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "x").read_text() == after


@pytest.mark.parametrize("text", ["a\nb\r", "a\rb\r"])
def test_a_diff_keeps_a_carriage_return_that_ends_no_line_of_others(text: str) -> None:
    assert "+b\r\n" in unified(None, FileText(text), "x").text


def test_a_diff_of_long_files_is_made_in_bounded_time_and_size() -> None:
    before = "".join(f"{n}\n" for n in range(50_000))
    after = "".join(f"{n} {n % 7}\n" for n in range(50_000))
    diff = unified(FileText(before), FileText(after), "x").text
    assert len(diff) < 201_000
    assert "left out" in diff


def test_the_history_is_bounded_in_levels_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    history = EditHistory()
    for n in range(editor_history.LEVELS + 20):
        history.add("x", Edit.between(b"%d" % n, b"%d" % (n + 1)))
    assert len(history._edits["x"]) == editor_history.LEVELS
    monkeypatch.setattr(editor_history, "MAX_BYTES", 10_000)
    for n in range(20):
        history.add(f"file{n}", Edit.between(b"o" * 2000, b"n"))
    assert history._size <= 10_000
    assert history._size == sum(edit.size for edits in history._edits.values() for edit in edits)
    assert history.last("x") is None
    assert history.last("file19") is not None


def test_a_small_edit_of_a_large_file_costs_little_history() -> None:
    before = b"x" * 10_000_000 + b"old" + b"y" * 10_000_000
    after = before.replace(b"old", b"new")
    edit = Edit.between(before, after)
    assert edit.size < 1000
    assert edit.undone(after) == before
