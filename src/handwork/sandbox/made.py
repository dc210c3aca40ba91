"""Repositories that programs made in a workspace, and what git would run there."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from handwork.sandbox import beneath, git_config
from handwork.sandbox.survey import AT_END, survey

_SETTINGS = 1 << 20
_MOST_TOLD = 10


def is_repository(root: int, path: str) -> bool:
    """Whether git takes a folder of the workspace (`root`, a descriptor) for a repository, as far as names say it."""
    return all(beneath.look(root, f"{path}/{name}") is not None for name in ("HEAD", "objects", "refs"))


def made_inside(workspace: Path, root: int, before: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """Git folders that were not there `before` and have git run something: each with what that is.

    root: a descriptor of the workspace.
    """
    for folder in survey(workspace, AT_END).repositories:
        if folder not in before and (found := list(_programs(root, f"{folder}/" if folder else "", before))):
            yield folder or ".", found[:_MOST_TOLD]


def _programs(root: int, place: str, before: Collection[str]) -> Iterator[str]:
    for name in ("config", "config.worktree", "hooks"):
        status = beneath.look(root, f"{place}{name}")
        if status is not None and stat.S_ISLNK(status.st_mode):
            yield f"{name}, which is a link"
    for name in ("config", "config.worktree"):
        data = beneath.read(root, f"{place}{name}", _SETTINGS) or b""
        yield from git_config.programs(data.decode(errors="replace"))
        if len(data) == _SETTINGS:
            yield f"{name}, which is too large to be read here"
    for name in sorted(beneath.names(root, f"{place}hooks")):
        if not name.endswith(".sample"):
            yield f"the hook {name}"
    common = beneath.read(root, f"{place}commondir", 4096)
    if common is not None:
        target = os.path.normpath(f"{place}{common.decode(errors='replace').strip()}")
        if target not in before:
            yield f"settings and hooks in {target} (commondir)"
