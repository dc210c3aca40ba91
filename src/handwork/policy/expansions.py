"""Expansions that evaluate what a variable holds: a subscript or a prompt in it may run commands, which no text shows."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"[\d\s+\-*/%()<>=!&|^~,?:]*")
_SUBSTITUTED = re.compile(
    r"#?(?:\w+|[@*#?$!_-])(?:\[(?:[@*]|\d+)\])?(?:|:?[-?+].*|[#%^,/].*|:\s*\d+(?::\s*\d+)?|@[QUuLEAak])", re.DOTALL
)


def is_plain_arithmetic(text: str) -> bool:
    """Whether an expression holds numbers alone: the value of a name in it is read as an expression, too."""
    return _NUMBERS.fullmatch(text) is not None


def evaluates(parameter: str) -> bool:
    """Whether `${…}` does more than put a value there: indirection, subscripts, offsets, `@P`, and giving a value (`=`)."""
    return _SUBSTITUTED.fullmatch(parameter) is None
