"""Standard input as text: the task itself, or what a typed task is about."""

from __future__ import annotations

import os
import re
import select
import stat
import sys

from handwork.errors import ConfigError

LIMIT = 1_000_000
"""Bytes; more is no text that a model can be given at once."""
PATIENCE = 3.0
"""Seconds that a typed task waits for the first of what a pipe beside it may bring."""


class NothingCame(Exception):
    """A pipe was left open in which nothing came."""


def whole_input() -> str:
    """All of standard input, waited for however long it takes; '' where there is none. Raises ConfigError for what is no text."""
    descriptor = _descriptor()
    return "" if descriptor is None else _text(descriptor)


def input_beside_a_task() -> str:
    """What a pipe, a socket or a file on standard input holds; a terminal, a device and none at all hold nothing.

    Raises ConfigError for what is no text, and NothingCame for a pipe that may be nobody's: the first of it has to come soon.
    """
    descriptor = _descriptor()
    if descriptor is None:
        return ""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        if not select.select([descriptor], [], [], PATIENCE)[0]:
            raise NothingCame
    elif not stat.S_ISREG(mode):
        return ""
    return _text(descriptor)


def task_with(task: str, given: str) -> str:
    """A task with the text that it is about below it, in a fence that nothing in the text can end."""
    if not given.strip():
        return task
    longest = max((len(ticks) for ticks in re.findall("`{3,}", given)), default=2)
    fence = "`" * (longest + 1)
    return f"{task.rstrip()}\n\nFrom standard input:\n\n{fence}\n{given.rstrip()}\n{fence}"


def _descriptor() -> int | None:
    try:
        descriptor = sys.stdin.fileno()
        os.fstat(descriptor)
    except (AttributeError, OSError, ValueError):  # there is none
        return None
    return descriptor


def _text(descriptor: int) -> str:
    data = bytearray()
    while len(data) <= LIMIT and (piece := _piece(descriptor)):
        data += piece
    if len(data) > LIMIT:
        raise ConfigError(
            f"Standard input holds more than {LIMIT // 1_000_000} MB of text",
            hint="put it into a file of the workspace and name that in the task: the agent reads what it needs",
        )
    if b"\0" in data:
        raise ConfigError(
            "Standard input is no text",
            hint="put it into a file of the workspace and name that in the task; pictures go along with --image",
        )
    return data.decode("utf-8-sig", "replace")


def _piece(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError as error:
        raise ConfigError(
            f"Standard input cannot be read: {error.strerror}", hint="or leave it out: < /dev/null"
        ) from error
