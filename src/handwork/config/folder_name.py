"""Which folders can be worked in by their name: it goes into the journal, the prompt and every program's arguments."""

from __future__ import annotations

from pathlib import Path

from handwork.errors import ConfigError


def storable(folder: Path) -> Path:
    """The folder. Raises ConfigError if its path is not UTF-8 text: then it could be neither stored nor sent."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        shown = str(folder).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        raise ConfigError(
            f"The workspace {shown} cannot be used: its path is not UTF-8 text",
            hint="rename it, or name another folder with --workspace",
        ) from None
    return folder
