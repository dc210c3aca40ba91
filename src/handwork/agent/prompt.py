"""Prompts as Markdown files, read at their first use."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import cast

_FOLDER = Path(__file__).parent / "prompts"


def prompt_file(name: str) -> str:
    """For a class attribute: its value is the text of agent/prompts/<name>.md; an instance may hold a text of its own."""
    return cast(str, _PromptFile(name))  # typed as what reading the attribute gives


class _PromptFile:
    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> str:
        return read_prompt(self._name)


@lru_cache(maxsize=64)
def read_prompt(name: str) -> str:
    """The text of agent/prompts/<name>.md."""
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()
