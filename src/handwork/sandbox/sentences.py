"""Sentences for the model about what the sandbox did: no more than anybody reads."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 20


def few(sentences: Sequence[str]) -> list[str]:
    """The first of them, and how many there are beside: a program can cause any number."""
    more = len(sentences) - MOST
    return list(sentences) if more <= 0 else [*sentences[:MOST], f"{more} more things like these happened."]
