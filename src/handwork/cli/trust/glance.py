"""Whether a workspace may carry something for us: a look that costs a chat's first prompt nothing."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

CARRIERS = (
    "handwork.toml",
    "config/config.toml",
    "mcp.json",
    ".mcp.json",
    "config/mcp.json",
    ".handwork/agents",
    ".handwork/skills",
)
"""The names of `config.carried`, which are not asked here: importing them takes longer than the prompt."""


def carries_something(workspace: Path | None) -> bool:
    """Whether a closer look is worth it."""
    with suppress(OSError, ValueError, RuntimeError):
        folder = (workspace or Path.cwd()).expanduser()
        return any(os.path.lexists(folder / name) for name in CARRIERS)
    return False
