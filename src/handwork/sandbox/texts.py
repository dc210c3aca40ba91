"""How a path or rule is named to people and models: on one line, with nothing that acts or hides."""

from __future__ import annotations


def shown(text: str) -> str:
    """The text with everything that is not printed spelt out."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
