"""`handwork chat`: the prompt is drawn first, then what it needs is loaded behind it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from handwork.cli.screen import is_terminal
from handwork.cli.trust.glance import carries_something
from handwork.errors import ConfigError, NoModelError

_BANNER = "Handwork. Say what is to be done – /help for more, Esc stops, Ctrl-D ends"


def chat(make: Callable[[], Any], workspace: Path | None = None) -> int:
    """Talk until the human leaves; the exit code. Raises HandworkError for what is wrong before that.

    Args:
        make: makes the RunOptions; called behind the prompt, since it takes a moment.
        workspace: as it was typed.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise ConfigError("A chat needs a terminal", hint='give a task instead: handwork run "TASK"')
    if carries_something(workspace):
        make = _asked(make)
    while True:
        try:
            return asyncio.run(_chat(make))
        except NoModelError as error:
            if not _set_up(make, error):
                raise


def _asked(make: Callable[[], Any]) -> Callable[[], Any]:
    """Options with what the human says of the workspace's configuration, who is asked before the prompt is there."""
    from handwork.cli.trust.question import ask_about

    options = make()
    options = replace(options, trusted=ask_about(options.workspace, options.config))
    return lambda: options


def _set_up(make: Callable[[], Any], error: NoModelError) -> bool:
    from handwork.cli.setup.setup import offer_setup
    from handwork.sandbox.open import check_workspace

    options = make()
    settings = options.settings()
    check_workspace(settings.sandbox, options.folder)
    return offer_setup(settings, error, options.config)


async def _chat(make: Callable[[], Any]) -> int:
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        from handwork.cli.chat.plain import chat_in_lines

        return await chat_in_lines(make, _BANNER)
    from handwork.cli.chat.desk import Desk

    return await Desk(make).run(_BANNER)
