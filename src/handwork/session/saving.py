"""Files for people beside the store: a session's artifacts, under names that are safe and unique."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

_LONGEST = 100


class Saving:
    """Writes a session's artifacts into its folder, which is made if need be. It knows how far each name has been counted: a name
    that comes thousands of times is not tried from the first number on each time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: dict[str, int] = {}

    def save(self, name: str, data: bytes) -> Path:
        """Write a file under that name or one like it; returns where it is."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._free(re.sub(r"[^\w.-]+", "_", name).lstrip(".")[:_LONGEST] or "artifact")
        path.write_bytes(data)
        return path

    def _free(self, safe: str) -> Path:
        for number in count(self._last.get(safe, 0) + 1):
            path = self._folder / (safe if number == 1 else f"{Path(safe).stem}-{number}{Path(safe).suffix}")
            if not path.exists():
                self._last[safe] = number
                return path
        raise AssertionError("numbers do not end")
