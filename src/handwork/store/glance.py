"""A look at the names of the sessions without opening the store: nothing is made, waited for or loaded."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_RECENT = "SELECT id, title FROM sessions ORDER BY workspace = ? DESC, turn DESC LIMIT ?"


def recent_sessions(path: Path, workspace: str, limit: int) -> list[tuple[str, str]]:
    """Ids and titles, those of the workspace first, then the last active first; [] where the file cannot be read."""
    if not path.is_file():
        return []
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.1)
        try:
            return [(str(name), str(title)) for name, title in connection.execute(_RECENT, (workspace, limit))]
        finally:
            connection.close()
    except sqlite3.Error:
        return []
