"""Markdown line by line: what is drawn, and what stays as it was written."""

from __future__ import annotations

import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from handwork.cli.inline import inline
from handwork.cli.markdown import Markdown


def drawn(text: str, columns: int = 80) -> str:
    """The text as it stands on a terminal, without colours."""
    console = Console(file=io.StringIO(), width=columns, highlight=False, markup=False, emoji=False)
    markdown = Markdown(columns)
    for line in text.split("\n"):
        for drawing in markdown.feed(line):
            console.print(drawing, soft_wrap=isinstance(drawing, Text))
    for drawing in markdown.finish():
        console.print(drawing, soft_wrap=isinstance(drawing, Text))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip("\n")


@pytest.mark.parametrize(
    "text",
    [
        "def f(*args, **kwargs): return 2 * 3 * 4",
        "src/**/*.py and tests/**/*.py, __init__.py, snake_case_name",
        "a < b > c && d | e, List[int](x), foo[0](bar)",
        "    indented\n\tand tabs".expandtabs(8),
        "$ cat x | grep y\n~/a ~~ b",
        "C:\\path\\_x_ and \\*literal\\*",
        "not | a table\n| neither |",
        "<b>html</b> &amp; entities",
        "1.5 and 2) 3",
        "#hashtag and #!shebang",
    ],
)
def test_what_is_no_markdown_stays_as_it_is(text: str) -> None:
    assert drawn(text) == text


@given(st.lists(st.text(st.characters(codec="ascii", categories=["Lu", "Ll", "Nd"]), max_size=8), max_size=8))
def test_plain_words_always_stay(words: list[str]) -> None:
    text = " ".join(words).strip()
    assert drawn(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Title #", "Title"),
        ("a **b** *c* `d` ~~e~~ _f_", "a b c d e f"),
        ("这是**重点**内容", "这是重点内容"),
        ("`` a ` b ``", "a ` b"),
        ("**a *b* c**", "a b c"),
        ("[docs](https://a.b/c_(d)) [https://a.b](https://a.b)", "docs (https://a.b/c_(d)) https://a.b"),
        ("[x](javascript.md)", "[x](javascript.md)"),
        ("- one\n  * two\n    + three", "• one\n  • two\n    • three"),
        ("> one\n>> two", "▎ one\n▎ ▎ two"),
        ("```py\nx = 1  # **no**\n```\nafter", "x = 1  # **no**\nafter"),
        ("~~~\n```\n~~~", "```"),
        ("````\n```\n````", "```"),
        ("  ```\n  a\n    b\n  ```", "a\n  b"),
        ("```\nnever closed\n| a |\n|---|", "never closed\n| a |\n|---|"),
        ("| a |\n|---|\n| 1 | 2 |", "╭───────╮\n│ a     │\n├───────┤\n│ 1 | 2 │\n╰───────╯"),
        (
            "| a | b |\n|---|---|\n| x \\| y | |",
            "╭───────┬───╮\n│ a     │ b │\n├───────┼───┤\n│ x | y │   │\n╰───────┴───╯",
        ),
    ],
)
def test_what_is_markdown_is_drawn(text: str, shown: str) -> None:
    assert "\n".join(row.rstrip() for row in drawn(text).split("\n")) == shown


def test_long_lines_are_broken_between_words_and_below_their_mark() -> None:
    rows = drawn(f"- {'word ' * 40}", 40).split("\n")
    assert rows[0].startswith("• word")
    assert all(row.startswith("  word") for row in rows[1:])
    assert max(map(len, rows)) <= 40
    assert drawn("x" * 100, 40) == "x" * 100


def test_every_line_is_drawn_at_once_but_a_table_s_and_some_of_code() -> None:
    markdown = Markdown(80)
    assert [str(text) for text in markdown.feed("a **line**")] == ["a line"]
    assert markdown.feed("```python") == []
    lines = [f'x{number} = """a' for number in range(8)]
    for line in lines[:-1]:
        assert markdown.feed(line) == []
    assert markdown.held == lines[:-1]
    assert [str(text) for text in markdown.feed(lines[-1])] == lines
    assert markdown.held == []
    markdown.feed("```")
    assert markdown.feed("| a |") == []
    assert markdown.held == ["| a |"]


@pytest.mark.parametrize("language", ["python", "nonsense", "", "console", "json"])
def test_code_is_never_changed(language: str) -> None:
    code = "\n".join(["", "  a = 1   ", "", "", "\tb", *(f"line {number}" for number in range(30)), "", ""])
    shown = drawn(f"```{language}\n{code}\n```\nend").split("\n")
    assert [row.rstrip() for row in shown] == [*(row.expandtabs(8).rstrip() for row in code.split("\n")), "end"]


def test_a_long_code_block_and_hostile_marks_take_no_time() -> None:
    began = time.monotonic()
    drawn("```python\n" + "\n".join(f"x{number} = 'a' + f(b)" for number in range(600)))
    for text in ("*" * 20_000, "`a" * 10_000, "**a " * 5000, "[a](" * 5000, "_a" * 9000, "~~a" * 6000):
        inline(text)
    assert time.monotonic() - began < 15
