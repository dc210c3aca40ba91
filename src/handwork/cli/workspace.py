"""The folder to work in: its real path, and whether it can be one."""

from __future__ import annotations

import os
from pathlib import Path

from handwork.config.folder_name import storable
from handwork.errors import ConfigError


def real_folder(named: Path | None) -> Path:
    """The real path of a named workspace, or of the current folder; it need not be there yet.

    Raises ConfigError for what is, or leads through, something that is no folder or that cannot be entered.
    """
    try:
        folder = storable((named or Path.cwd()).expanduser().resolve())
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"The workspace {folder} is no folder: name one with --workspace")
    except RuntimeError as error:  # an unknown ~user, or links that lead in a circle
        raise ConfigError(f"The workspace {named} cannot be used: {error}") from error
    except FileNotFoundError as error:
        raise ConfigError("The current folder is gone: go to another, or name one with --workspace") from error
    except OSError as error:
        raise ConfigError(f"The workspace {named or ''} cannot be used: {error.strerror}") from error
    if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):
        raise ConfigError(f"The workspace {folder} cannot be read: look at its permissions, or name another folder")
    return folder


def make_folder(folder: Path) -> bool:
    """Make the workspace if it is not there; whether it was made. Raises ConfigError."""
    if folder.is_dir():
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"The workspace {folder} cannot be made: {error.strerror}") from error
    return True
