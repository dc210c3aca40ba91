"""Runs inside the sandbox: a value as text that says what a model needs to know of it, however large it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

_LONG_TEXT = 4000
_MANY = 100
_HEAD, _TAIL = 50, 10
_LONGEST = 20_000
"""Characters of any value; print shows more."""


def shown(value: Any, usual: Callable[[Any], str]) -> str:
    """The value as `usual` shows it; of long texts and large collections head and tail, with their size."""
    kind = type(value)
    if kind in (str, bytes, bytearray) and len(value) > _LONG_TEXT:
        unit = "characters" if kind is str else "bytes"
        head, tail = repr(value[: _LONG_TEXT // 2]), repr(value[-_LONG_TEXT // 4 :])
        return f"{head}\n... ({kind.__name__} of {len(value):,} {unit}) ...\n{tail}"
    if kind in (list, tuple, set, frozenset, deque) and len(value) > _MANY:
        return _collection(value, (usual(item) for item in value), f"{kind.__name__} of {len(value):,} items")
    if kind is dict and len(value) > _MANY:
        pairs = (f"{usual(key)}: {usual(item)}" for key, item in value.items())
        return _collection(value, pairs, f"dict of {len(value):,} items")
    text = usual(value)
    return bounded(text + _size(value, text))


def _collection(value: Any, items: Iterable[str], size: str) -> str:
    if isinstance(value, (list, tuple, deque)):
        texts = list(islice(items, _HEAD))
        last = list(islice(value, len(value) - _TAIL, None))
        ends = ", ".join(_cut(repr(item)) for item in last)
        body = f"{', '.join(map(_cut, texts))}, ... {len(value) - _HEAD - _TAIL:,} more ..., {ends}"
        return bounded(f"({body})\n({size})" if isinstance(value, tuple) else f"[{body}]\n({size})")
    texts = [_cut(text) for text in islice(items, _HEAD)]
    return bounded(f"{{{', '.join(texts)}, ... {len(value) - _HEAD:,} more}}\n({size})")


def _cut(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:200]}... ({len(text):,} characters)"


def bounded(text: str) -> str:
    """Head and tail of a long text, and how much is missing."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n... ({len(text) - _LONGEST:,} characters of this value are left out) ...\n{text[-half:]}"


def _size(value: Any, text: str) -> str:
    """What numpy leaves out when it leaves out items."""
    kind = type(value)
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray" and value.size > 1000 and "shape=" not in text:
        return f"\n(array of shape {value.shape}, {value.dtype})"
    return ""
