"""What is shown with --quiet all the same: warnings, which say what happened to the user's files or may do harm."""

from __future__ import annotations

from handwork import events as ev
from handwork.cli.lines import Screen
from handwork.cli.render import Renderer


class Warnings:
    """A listener that draws warnings and errors on a screen, and nothing else."""

    def __init__(self, screen: Screen) -> None:
        self._renderer = Renderer(screen, heads=False)

    def __call__(self, event: ev.Event) -> None:
        if isinstance(event, ev.Notice) and event.level != "info":
            self._renderer(event)
