"""SIGINT and SIGTERM for a server: the first ends it in good order, the second at once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_AT_ONCE = 130


@contextmanager
def stopped_by_signals() -> Iterator[asyncio.Event]:
    """Yields what is set by the first signal."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def come() -> None:
        if stop.is_set():
            os._exit(_AT_ONCE)
        stop.set()

    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, come)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
