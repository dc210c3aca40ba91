"""The folders that a server is told to work in: the workspace, and those that its entry gives it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from handwork.config import MCPServerSettings


def roots_of(settings: MCPServerSettings, workspace: str) -> list[Path]:
    """The workspace first. A server of files takes these in the place of the folders among its arguments, which are meant all the
    same; of the folders that the sandbox shows it, those in which its program lies are none to work in."""
    named = [*_folders(settings.args)]
    for folder in _folders(settings.paths):
        if not any(Path(each).is_relative_to(folder) for each in (settings.command, *settings.args)):
            named.append(folder)
    return list(dict.fromkeys((Path(workspace), *named)))


def _folders(texts: tuple[str, ...]) -> Iterator[Path]:
    for text in texts:
        try:
            place = Path(text).expanduser()
            if place.is_absolute() and place.is_dir():
                yield place
        except (OSError, ValueError, RuntimeError):  # no path at all, or of a user that is none
            continue
