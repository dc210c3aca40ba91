"""Which calls must not run at the same time (CONTRACT B7): a pure question about their actions."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from functools import lru_cache

from handwork.schema import Action

_LONGEST = 1024
"""Characters of a resource that is remembered; longer ones are read each time."""
_ALONE = frozenset({"ask", "end"})


def conflicts(a: Sequence[Action], b: Sequence[Action]) -> bool:
    """Whether two calls share a resource and one of them does more than read it.

    Calls that ask the human or end the run go with nothing else. Nothing declared is the worst: execute on `*`. A
    `network` action counts as a read if it is repeatable (a page fetched twice is the same page) and as more if it is not;
    whoever changes something at an address repeatably declares a `write` on it beside.

    Args:
        a: the actions of one call; paths are absolute and real (`Sandbox.resolve`), as nothing is looked up here.
        b: those of another.
    """
    if not a or not b:
        return True
    if len(a) == len(b) == 1:  # the usual case: a reply of a thousand calls has half a million pairs
        return _alone(a[0]) or _alone(b[0]) or _clash(a[0], b[0])
    if any(map(_alone, a)) or any(map(_alone, b)):
        return True
    return any(_clash(one, other) for one in a for other in b)


def _alone(action: Action) -> bool:
    return action.kind in _ALONE


def _clash(one: Action, other: Action) -> bool:
    return not (_only_reads(one) and _only_reads(other)) and shares(one.resource, other.resource)


def _only_reads(action: Action) -> bool:
    return action.kind == "read" or (action.kind == "network" and action.repeatable)


def shares(a: str, b: str) -> bool:
    """Whether two resources are the same, or one lies below the other.

    `*` is shared with everything, a folder with all below it; `/a/b` and `/a/bc` have nothing in common. What cannot be
    placed without looking (an empty name, `~`, a relative path that climbs) is taken for `*`.
    """
    if a == b:
        return True
    one = _known_parts(a) if len(a) <= _LONGEST else _parts(a)
    other = _known_parts(b) if len(b) <= _LONGEST else _parts(b)
    if one is None or other is None:
        return True
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _parts(resource: str) -> tuple[str, ...] | None:
    """The resource as a path from the general to the particular; None is `*`."""
    scheme, separator, rest = resource.partition("://")
    if separator and scheme and "/" not in scheme:
        host, _, path = rest.partition("/")
        path = posixpath.normpath("/" + path.split("#")[0].split("?")[0])
        return (f"{scheme.lower()}://{host.lower()}", *_names(path))
    if resource in ("", "*") or resource.startswith("~"):
        return None
    path = posixpath.normpath(resource)
    if path.startswith("/"):
        return ("/", *_names(path))
    return None if path in (".", "..") or path.startswith("../") else _names(path)


_known_parts = lru_cache(maxsize=8192)(_parts)


def _names(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name)
