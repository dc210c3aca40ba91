"""An end to the work of judging by a schema: a few rules that refer to each other can have more ways than there is time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_MOST = 30_000
"""Keywords that one value is judged by: about a second."""
_AT_ONCE = 8
"""Members of a keyword's list that cost as much as a keyword."""


class TooMuch(Exception):
    """It would take too long; nobody knows whether the value fits."""


_left: ContextVar[list[int]] = ContextVar("_left")


@contextmanager
def bounded() -> Iterator[None]:
    """Raise TooMuch when the keywords that are judged by in this block are too many."""
    token = _left.set([_MOST])
    try:
        yield
    finally:
        _left.reset(token)


def counted(judge: Callable[..., Any]) -> Callable[..., Any]:
    """A keyword of a validator that is counted; to be used within `bounded`."""

    def check(validator: Any, rule: Any, instance: Any, schema: Any) -> Any:
        left = _left.get()
        left[0] -= 1 + (len(rule) // _AT_ONCE if isinstance(rule, (list, dict)) else 0)
        if left[0] < 0:
            raise TooMuch
        return judge(validator, rule, instance, schema)

    return check
