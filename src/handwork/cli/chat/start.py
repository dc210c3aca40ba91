"""`handwork chat`: the prompt is drawn first, then what it needs is loaded behind it."""

from __future__ import annotations

import asyncio
import os
import sys

from handwork.cli.options import RunOptions
from handwork.cli.screen import is_terminal
from handwork.config import Settings
from handwork.errors import ConfigError, NoModelError

_BANNER = "Handwork. Say what is to be done – /help for more, Esc interrupts, Ctrl-D leaves"


def chat(options: RunOptions) -> int:
    """Talk until the human leaves; the exit code. Raises HandworkError for what is wrong before that."""
    if options.json or options.quiet:
        raise ConfigError("A chat has no --json and no --quiet", hint='handwork run "TASK" has')
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise ConfigError("A chat needs a terminal", hint='give a task instead: handwork run "TASK"')
    while True:
        settings = options.settings()
        try:
            return asyncio.run(_chat(options, settings))
        except NoModelError as error:
            if not _set_up(settings, error):
                raise


def _set_up(settings: Settings, error: NoModelError) -> bool:
    from handwork.cli.setup import offer_setup

    return offer_setup(settings, error)


async def _chat(options: RunOptions, settings: Settings) -> int:
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        from handwork.cli.chat.plain import chat_in_lines

        return await chat_in_lines(options, settings, _BANNER)
    from handwork.cli.chat.desk import Desk

    return await Desk(options, settings).run(_BANNER)
