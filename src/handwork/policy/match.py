"""How surely a rule speaks about what is done."""

from __future__ import annotations

from enum import IntEnum


class Match(IntEnum):
    """MAYBE: nobody can tell before it happens. It makes a question of a rule that denies or asks, and is none for one that allows."""

    NO = 0
    MAYBE = 1
    YES = 2
