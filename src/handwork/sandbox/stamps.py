"""Which folders have not changed since they were looked at: nobody can set the time of change that the kernel keeps."""

from __future__ import annotations

import time

from handwork.sandbox import beneath

_SETTLED = 3.0
"""Seconds after which a folder's time of change is sure to differ at the next change, on every file system."""


class Stamps:
    """Of folders in a workspace (`root`, a descriptor)."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._stamps: dict[str, tuple[int, int]] = {}

    def settled(self, folder: str) -> bool:
        """Whether a folder's names are those of the last look; also if it is gone."""
        status = beneath.look(self._root, folder)
        if status is None:
            return True
        stamp = (status.st_ino, status.st_ctime_ns)
        if self._stamps.get(folder) == stamp:
            return True
        if time.time() - status.st_ctime_ns / 1e9 > _SETTLED:
            self._stamps[folder] = stamp
        return False

    def forget(self, folder: str) -> None:
        """Have it looked at again: what appears deeper does not change it."""
        self._stamps.pop(folder, None)
