"""Files of other makers' programs that only happen to be called like one of ours."""

from __future__ import annotations

import tomllib

from handwork.config.tables import TABLES
from handwork.sandbox import beneath, protected

_SHARED = "config/config.toml"
_LARGEST = 1_000_000


def may_be_foreign(path: str) -> bool:
    """Whether other programs call a file of theirs so, too."""
    return "/".join(protected.fold(part) for part in path.split("/")[-2:]) == _SHARED


def is_foreign(root: int, path: str) -> bool:
    """Whether this file of a workspace (`root`, a descriptor) says nothing to Handwork; of what cannot be read, it may."""
    if not may_be_foreign(path):
        return False
    data = beneath.read(root, path, _LARGEST)
    if data is None or len(data) == _LARGEST:
        return False
    try:
        return not TABLES.keys() & tomllib.loads(data.decode()).keys()
    except (ValueError, RecursionError):
        return False
