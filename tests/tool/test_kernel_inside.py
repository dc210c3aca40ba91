"""What the kernel shows of values, media and errors: useful to a model, however large they are."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from handwork.tool.kernel_inside.media import text_of, text_of_html
from handwork.tool.kernel_inside.traces import lines_of
from handwork.tool.kernel_inside.values import shown


@pytest.mark.parametrize(
    ("value", "size", "tail"),
    [
        ("a" * 9_000 + "z", "str of 9,001 characters", "z'"),
        (b"a" * 9_000, "bytes of 9,000 bytes", "a'"),
        (list(range(5_000)), "list of 5,000 items", "4998, 4999]"),
        (tuple(range(5_000)), "tuple of 5,000 items", "4999)"),
        (deque(range(5_000)), "deque of 5,000 items", "4999]"),
        (set(range(5_000)), "set of 5,000 items", ""),
        ({n: n for n in range(5_000)}, "dict of 5,000 items", ""),
    ],
)
def test_of_a_long_value_head_tail_and_size_are_shown(value: Any, size: str, tail: str) -> None:
    text = shown(value, repr)
    assert size in text
    assert tail in text
    assert len(text) < 6_000


def test_a_short_value_is_shown_as_ever() -> None:
    assert shown([1, "a"], repr) == "[1, 'a']"
    assert shown("x", repr) == "'x'"


def test_a_value_that_shows_itself_at_length_is_bounded() -> None:
    class Talker:
        def __repr__(self) -> str:
            return "t" * 1_000_000

    text = shown(Talker(), repr)
    assert len(text) < 21_000
    assert "980,000 characters of this value are left out" in text
    assert len(shown([Talker()] * 500, repr)) < 25_000


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"text/plain": "42", "text/html": "<b>42</b>"}, "42"),
        ({"text/plain": "<IPython.core.display.HTML object>", "text/html": "<p>a<br>b</p>"}, "a\nb"),
        ({"text/plain": "<x.Y at 0x7f>", "text/markdown": "# T"}, "# T"),
        ({"text/plain": "<IPython.core.display.Latex object>", "text/latex": "$x$"}, "$x$"),
        ({"text/plain": "<IPython.core.display.JSON object>", "application/json": {"a": 1}}, '{\n "a": 1\n}'),
        ({"text/plain": "<Figure size 1x1 with 1 Axes>", "image/png": "AA"}, "<Figure size 1x1 with 1 Axes>"),
        ({"text/html": "<b>only</b>"}, "only"),
        ({}, ""),
    ],
)
def test_of_what_a_value_offers_the_text_that_says_most_is_taken(data: dict[str, Any], text: str) -> None:
    assert text_of(data) == text


@pytest.mark.parametrize("kind", ["application/vnd.vegalite.v5+json", "application/vnd.plotly.v1+json"])
def test_a_chart_that_only_a_browser_draws_says_so(kind: str) -> None:
    assert "make a PNG" in text_of({"text/plain": "alt.Chart(...)", kind: {}})
    assert "make a PNG" not in text_of({"text/plain": "alt.Chart(...)", kind: {}, "image/png": "AA"})


def test_html_becomes_text_with_cells_parted_and_scripts_left_out() -> None:
    page = "<style>b{}</style><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>&lt;2&gt;</td></tr></table><script>x()</script>"
    assert text_of_html(page) == "a | b\n1 | <2>"


def _caught(code: str) -> BaseException:
    try:
        exec(compile(code, "cell.py", "exec"), {})
    except BaseException as error:
        return error
    raise AssertionError("the code was meant to fail")


def _trace(code: str) -> str:
    return lines_of(_caught(code), lambda file: "Cell 7" if file == "cell.py" else "")[0]


def test_a_traceback_names_the_cells_and_passes_over_library_code() -> None:
    text = _trace("import json\ndef f():\n    json.loads('{bad')\nf()")
    assert "  Cell 7, line 4, in <module>\n" in text
    assert "  Cell 7, line 3, in f\n" in text
    assert "[... 2 frame(s) of library code ...]\n" in text
    assert text.endswith("JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)")


def test_a_recursion_without_end_is_short() -> None:
    text = _trace("def f(n):\n    f(n + 1)\nf(0)")
    assert "times more" in text
    assert len(text.splitlines()) < 20


def test_the_errors_behind_an_error_are_told() -> None:
    text = _trace("try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('outer') from e")
    assert "ZeroDivisionError: division by zero" in text
    assert "direct cause" in text
    assert text.endswith("ValueError: outer")
