"""Files for people beside the store: a session's artifacts, under names that are safe and unique."""

from __future__ import annotations

import re
from pathlib import Path

_LONGEST = 100


def save(folder: Path, name: str, data: bytes) -> Path:
    """Write a file into a folder of artifacts, which is made if need be; returns where it is."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    safe = re.sub(r"[^\w.-]+", "_", name).lstrip(".")[:_LONGEST] or "artifact"
    path, number = folder / safe, 1
    while path.exists():
        number += 1
        path = folder / f"{Path(safe).stem}-{number}{Path(safe).suffix}"
    path.write_bytes(data)
    return path
