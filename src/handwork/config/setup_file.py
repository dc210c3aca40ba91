"""The explicit choice of a model made in `handwork setup`: a file that only that command writes, under every other setting."""

from __future__ import annotations

import json
from pathlib import Path

from handwork.config.keys import write_privately
from handwork.errors import ConfigError

FILE = "setup.toml"
_HEAD = "# Written by `handwork setup`. What config.toml says goes over it; run the command again to change it.\n"


def write_choice(folder: Path, model: str, base_url: str = "") -> Path:
    """Make this the configured model of the configuration folder; returns the file. Raises ConfigError."""
    path = folder / FILE
    rows = {"model": model} | ({"base_url": base_url} if base_url else {})
    text = (
        _HEAD
        + "[llm]\n"
        + "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in rows.items())
    )
    try:
        write_privately(path, text)
    except OSError as error:
        raise ConfigError(
            f"The choice cannot be written to {path}: {error.strerror}",
            hint="free or open that folder, or name another in HANDWORK_HOME",
        ) from None
    return path


def delete_choice(folder: Path) -> bool:
    """Forget the choice; whether there was one. Raises ConfigError."""
    path = folder / FILE
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(f"{path} cannot be deleted: {error.strerror}", hint="delete it yourself") from None
    return True
