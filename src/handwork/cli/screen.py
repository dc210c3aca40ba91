"""Which screen a stream gets: progress is drawn on standard error unless another is given."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from handwork.cli.columns import wrapped
from handwork.cli.lines import Screen, columns_of


def open_screen(stream: TextIO | None = None, *, spins: bool = True) -> Screen:
    """The screen for a stream, standard error unless given. A spinner needs a running event loop."""
    stream = stream or sys.stderr
    if not is_terminal(stream):
        return Screen(stream)
    from handwork.cli.terminal import TerminalScreen  # with it comes rich

    return TerminalScreen(stream, spins=spins)


def in_width(text: str, stream: TextIO) -> str:
    """The text as it is written to a stream: broken between words if that is a terminal."""
    return wrapped(text, columns_of(stream)) if is_terminal(stream) else text


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is at this end of the stream."""
    try:
        return stream is not None and not stream.closed and os.isatty(stream.fileno())
    except (OSError, ValueError):
        return False
