"""Standard output: events as lines of JSON, or the answer alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from handwork.events import Event, write_event


class JsonLines:
    """A listener that writes one event a line, each at once; `gone` is called when nobody reads any more."""

    def __init__(self, gone: Callable[[], None]) -> None:
        self._gone = gone
        self._open = True

    def __call__(self, event: Event) -> None:
        if not self._open:
            return
        try:
            sys.stdout.buffer.write(write_event(event) + b"\n")
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            self._open = False
            silence_stdout()
            self._gone()


def print_answer(text: str) -> None:
    """The (clean) answer as the last thing on standard output, in whatever encoding that has."""
    try:
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.flush()
        sys.stdout.buffer.write((text + "\n").encode(encoding, "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        silence_stdout()


def silence_stdout() -> None:
    """Nobody reads standard output any more: what is still written to it goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
