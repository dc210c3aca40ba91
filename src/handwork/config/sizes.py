"""How much room something may take, as people write it: 512m, 6 GiB, 1000000."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

_FORM = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
"""Of 1024, as Docker takes them."""


def bytes_of(text: str) -> int:
    """The number of bytes. Raises ValueError for what is no size."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no size: write it as 512m, 6g or a number of bytes")
    return int(float(found[1]) * _UNITS[found[2].lower()])


def _checked(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if isinstance(value, str) and bytes_of(value) <= 0:
        raise ValueError("it must be more than nothing")
    return value


def _at_least(smallest: str) -> AfterValidator:
    def check(value: str) -> str:
        if bytes_of(value) < bytes_of(smallest):
            raise ValueError(f"{value!r} is too little for a program to run with: give {smallest} or more")
        return value

    return AfterValidator(check)


Size = Annotated[str, BeforeValidator(_checked)]
"""A size in a configuration, kept as it was written."""
MemorySize = Annotated[Size, _at_least("64m")]
FileSize = Annotated[Size, _at_least("1m")]
