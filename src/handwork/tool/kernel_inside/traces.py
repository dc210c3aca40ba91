"""Runs inside the sandbox: a traceback that shows the code of the call, and of libraries only where they failed."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

_MANY = 24
_COMPILED = (".pyx", ".pxi")
_OURS = ("/IPython/core/", "/ipykernel/", "/kernel_inside/")
_LIBRARIES = tuple({sysconfig.get_path(name) + "/" for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def lines_of(error: BaseException, cell_of: Callable[[str], str]) -> list[str]:
    """The traceback of an error and of those behind it, in Python's own form; `cell_of` names the cell that a file is."""
    told = traceback.TracebackException.from_exception(error, compact=True)
    _shorten(told, cell_of, set())
    return ["".join(told.format()).rstrip("\n")]


def _shorten(told: traceback.TracebackException, cell_of: Callable[[str], str], seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    told.stack = _Short(told.stack, cell_of)
    more = [told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ())]
    for other in more:
        if other is not None:
            _shorten(other, cell_of, seen)


class _Short(traceback.StackSummary):
    """Frames of which those of libraries are passed over, but for the last of each row."""

    def __init__(self, frames: Any, cell_of: Callable[[str], str]) -> None:
        super().__init__(frame for frame in frames if not any(part in frame.filename for part in _OURS))
        self._cell_of = cell_of

    def format(self, **_how: Any) -> list[str]:
        texts = list(_once(self._texts()))
        if len(texts) > _MANY:
            half = _MANY // 2
            texts = [*texts[:half], f"  [... {len(texts) - _MANY} frames left out ...]\n", *texts[-half:]]
        return texts

    def _texts(self) -> Iterator[str]:
        passed = 0
        for frame, after in zip(self, [*self[1:], None], strict=True):
            if _is_library(frame) and after is not None and _is_library(after):
                passed += 1
                continue
            if passed:
                yield f"  [... {passed} frame(s) of library code ...]\n"
            passed = 0
            yield self._text(frame)

    def _text(self, frame: traceback.FrameSummary) -> str:
        where = self._cell_of(frame.filename) or f'File "{_short(frame.filename)}"'
        line = f"    {frame.line.strip()}\n" if frame.line else ""
        return f"  {where}, line {frame.lineno}, in {frame.name}\n{line}"


def _once(texts: Iterator[str]) -> Iterator[str]:
    """A frame that follows itself, as in a recursion without an end, is shown once with its count."""
    for text, same in groupby(texts):
        yield text
        if more := sum(1 for _ in same) - 1:
            yield f"  [... the same {more} times more ...]\n"


def _is_library(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith((*_LIBRARIES, "<frozen", sys.base_prefix + "/lib/")) or frame.filename.endswith(
        _COMPILED
    )


def _short(path: str) -> str:
    """A file of the current folder by its name there."""
    try:
        return path.removeprefix(f"{Path.cwd()}/")
    except OSError:  # the folder is gone
        return path
