"""Notices when the program that has started us is gone, even if somebody else holds our standard input open."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def watching_parent(gone: Callable[[], None]) -> Iterator[None]:
    """Call `gone` once our parent has ended. Where the system has no pidfd, the end of standard input has to do."""
    parent = os.getppid()
    try:
        descriptor = os.pidfd_open(parent)
    except (OSError, AttributeError):
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, gone)
    try:
        if os.getppid() != parent:  # it ended while we looked, and another may have its number
            gone()
        yield
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
