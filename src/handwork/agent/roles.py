"""Finds the class of a role by its name; imports no role before."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from handwork.agent.base import BaseAgent
from handwork.agent.names import ROLES
from handwork.errors import ConfigError


def load_role(name: str) -> type[BaseAgent]:
    """The class of a role; names ignore case, and `swe_agent` or `SWEAgent` are `swe` (CONTRACT C11).

    Raises ConfigError with the nearest names.
    """
    plain = _plain(name)
    place = next((place for role, place in ROLES.items() if _plain(role) == plain), None)
    if place is None:
        near = get_close_matches(name.lower(), ROLES, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(ROLES)}"
        raise ConfigError(f"There is no agent named {name!r}; {hint}")
    module, _, attribute = place.partition(":")
    role: type[BaseAgent] = getattr(import_module(module), attribute)
    return role


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").removesuffix("agent")
