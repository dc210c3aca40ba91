from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from handwork.schema import ToolResult
from handwork.tool.result import normalise


class Color(Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    day: date = date(2026, 1, 2)


@dataclass
class Size:
    width: int


class Odd:
    def __str__(self) -> str:
        return "odd"


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ("text", "text"),
        ("", ""),
        ('{"a": 1}', '{"a": 1}'),
        (0, "0"),
        (False, "false"),
        ([], "[]"),
        ({}, "{}"),
        ({"a": [1, None, "ü"]}, '{"a":[1,null,"ü"]}'),
        ((1, 2), "[1,2]"),
        ({1: "a"}, '{"1":"a"}'),
        (Point(x=1), '{"x":1,"day":"2026-01-02"}'),
        ([Size(2)], '[{"width":2}]'),
        (Color.RED, "red"),
        (Path("/a"), "/a"),
        (date(2026, 1, 2), "2026-01-02"),
        (Odd(), "odd"),
        ([Odd()], '["odd"]'),
        (float("nan"), "NaN"),
        (b"caf\xc3\xa9", "café"),
        (LOOP, "[[...]]"),
        (10**5000 // 10**4995, "100000"),
    ],
)
def test_anything_becomes_text_for_the_model(value: Any, output: str) -> None:
    assert normalise(value) == ToolResult(output=output)


def test_nothing_is_an_empty_result() -> None:
    assert normalise(None) == ToolResult()
    assert not normalise(None)


def test_bytes_that_are_no_text_are_described() -> None:
    assert "4 bytes that are no text" in str(normalise(b"\xff\xfe\x00\x01"))


def test_a_result_keeps_all_it_has() -> None:
    result = ToolResult(output="a", error="b", base64_image="aa", system="s", details={"x": 1})
    assert normalise(result) is result
    empty = ToolResult()
    assert normalise(empty) is empty
    assert normalise(ToolResult(output={"a": True}, error="b")) == ToolResult(output='{"a":true}', error="b")


def test_text_with_a_lone_surrogate_does_not_break_it() -> None:
    assert normalise({"a": "\ud800"}).output
    assert normalise("\ud800").output == "\ud800"


def test_several_pictures_are_one_result() -> None:
    assert ToolResult(images=("aa",))
    both = ToolResult(output="a", base64_image="x", images=("aa",)) + ToolResult(output="b", images=("bb", "cc"))
    assert (both.output, both.base64_image, both.images) == ("ab", "x", ("aa", "bb", "cc"))
