"""The names of sessions: short, sortable by day, safe as a file's name."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime

from handwork.errors import ConfigError

_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # none that looks like another
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def new_id() -> str:
    """A new session's id, such as 20261130-k3f9x2."""
    return f"{datetime.now(UTC):%Y%m%d}-{''.join(secrets.choice(_LETTERS) for _ in range(6))}"


def check_id(session_id: str) -> None:
    """Raise ConfigError for what cannot be the id of a new session: ids are also names of folders."""
    if not _ID.fullmatch(session_id):
        raise ConfigError(
            f"{session_id!r} cannot be a session's id: use letters, digits, '.', '_' and '-', 100 at most, first a letter or digit"
        )
