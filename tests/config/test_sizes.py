"""Sizes in the configuration: read as Docker reads them, and refused with what would do."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from handwork.config import SandboxSettings
from handwork.config.sizes import bytes_of


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("512m", 512 << 20),
        ("6g", 6 << 30),
        ("6 GiB", 6 << 30),
        ("1.5GB", 3 << 29),
        ("100k", 100 << 10),
        ("2t", 2 << 40),
        ("1000000", 1_000_000),
        ("10b", 10),
        (" 1 M ", 1 << 20),
    ],
)
def test_a_size_is_read(text: str, number: int) -> None:
    assert bytes_of(text) == number


@pytest.mark.parametrize("text", ["", "much", "-1m", "1.m", "5 apples", "0", "0g", "1e9", "١m"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="size|nothing"):
        SandboxSettings(memory_limit=text)


def test_a_number_of_bytes_may_be_a_number() -> None:
    assert SandboxSettings(memory_limit=100_000_000).memory_limit == "100000000"


@pytest.mark.parametrize("given", [{"memory_limit": "512"}, {"memory_limit": "63m"}, {"file_limit": "1000k"}])
def test_what_no_program_could_run_with_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match=r"too little for a program to run with: give (64m|1m) or more"):
        SandboxSettings.model_validate(given)
    assert SandboxSettings(memory_limit="64m", file_limit="1m", disk_reserve="1").file_limit == "1m"
