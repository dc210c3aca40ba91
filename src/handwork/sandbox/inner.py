"""What lies in a protected place, and what the links there lead to."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from handwork.sandbox import beneath

_MOST = 300
"""Entries of one protected folder that are looked at."""


def within(root: int, path: str) -> Iterator[tuple[str, os.stat_result]]:
    """A path of a workspace (`root`, a descriptor) and, of a folder, the first that lies in it and one level below."""
    left = _MOST
    for place in _two_levels(root, path):
        if (status := beneath.look(root, place)) is not None:
            yield place, status
        left -= 1
        if left < 0:
            return


def led_to(workspace: Path, root: int, path: str) -> Iterator[str]:
    """What the links in a protected place lead to in the workspace: the hooks of many repositories are such links."""
    for inner, status in within(root, path):
        if not stat.S_ISLNK(status.st_mode):
            continue
        target = os.path.relpath(os.path.realpath(workspace / inner), workspace)
        found = None if target == "." or target.startswith("../") else beneath.look(root, target)
        # A folder only for a link that stands for a protected one: in such a one, a link may lead to all there is.
        if found is not None and (stat.S_ISREG(found.st_mode) or inner == path):
            yield target


def _two_levels(root: int, path: str) -> Iterator[str]:
    yield path
    for name in beneath.names(root, path):
        yield f"{path}/{name}"
        yield from (f"{path}/{name}/{last}" for last in beneath.names(root, f"{path}/{name}"))
