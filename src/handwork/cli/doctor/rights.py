"""What can be written, asked of the file system rather than of its permission bits alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder: to root every permission seems to be given, a read-only disk included."""
    return not why_not_writable(folder)


def why_not_writable(folder: Path) -> str:
    """Why no file can be made there, in the system's words; '' if one can be."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0" * 4096)
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def nearest(path: Path) -> Path:
    """The path, or the deepest folder above it that is there."""
    path = path.absolute()
    return next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
