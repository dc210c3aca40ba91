"""What a server changed, laid into a file where it is too much for a terminal."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from handwork.cli.mcp.look import Looked, difference_of
from handwork.cli.mcp.show import rows_of
from handwork.config.keys import write_privately
from handwork.config.settings import Home
from handwork.errors import ConfigError

_FOLDER = "changes"


def laid_out(looked: Looked, home: Home) -> Path:
    """The file with all of it, with what could hide spelt out; one of an earlier time goes. Raises ConfigError."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", looked.name)[:40]
    digest = hashlib.sha256(looked.name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    file = home.data / "mcp" / _FOLDER / f"{plain}-{digest}.txt"
    text = "".join(f"{row}\n" for row, _ in rows_of(difference_of(looked, sys.maxsize)))
    try:
        write_privately(file, text)
    except OSError as error:
        raise ConfigError(
            f"What {looked.name} changed cannot be written into {file}: {error.strerror or error}",
            hint="free or open that folder, or name another in HANDWORK_HOME",
        ) from None
    return file
