"""How this program is called here: what a hint prints must work as it stands."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def program() -> str:
    """`handwork` if that is found, else the path of this interpreter's script, else the module; as a shell takes it."""
    if shutil.which("handwork"):
        return "handwork"
    script = Path(sys.executable).parent / "handwork"
    if os.access(script, os.X_OK):
        return shlex.quote(_short(str(script)))
    return f"{shlex.quote(sys.executable)} -m handwork"


def _short(path: str) -> str:
    """The path from the current folder, if that is shorter; always with a slash, or a shell would search for the name."""
    try:
        relative = os.path.relpath(path)
    except FileNotFoundError:  # the current folder is gone
        return path
    relative = relative if "/" in relative else f"./{relative}"
    return min(relative, path, key=len)
