"""How an agent's class attributes become its constructor's keyword arguments (CONTRACT A1)."""

from __future__ import annotations

import copy
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, ClassVar, get_origin

_SHARED = (str, int, float, bool, tuple, frozenset, type(None))


@lru_cache(maxsize=256)
def _fields(cls: type) -> frozenset[str]:
    names: set[str] = set()
    for base in cls.__mro__:
        for name, annotation in vars(base).get("__annotations__", {}).items():
            is_class_var = get_origin(annotation) is ClassVar or str(annotation).startswith("ClassVar")
            if not name.startswith("_") and not is_class_var:
                names.add(name)
    return frozenset(names)


@lru_cache(maxsize=256)
def _mutable_defaults(cls: type) -> tuple[str, ...]:
    found = ((name, getattr(cls, name, None)) for name in _fields(cls))
    return tuple(name for name, value in found if not isinstance(value, _SHARED))


def construct(instance: object, given: dict[str, Any]) -> None:
    """Set the given fields on an instance, and a copy of each mutable default that was not given.

    Raises TypeError for a name that is no field, with the nearest one.
    """
    cls: type = type(instance)
    if unknown := given.keys() - _fields(cls):
        name = min(unknown)
        near = get_close_matches(name, _fields(cls), 1)
        hint = f": did you mean {near[0]!r}?" if near else f"; the fields are {', '.join(sorted(_fields(cls)))}"
        raise TypeError(f"{cls.__name__}() has no field {name!r}{hint}")
    for name in _mutable_defaults(cls):
        if name not in given:
            setattr(instance, name, copy.deepcopy(getattr(cls, name)))
    for name, value in given.items():
        setattr(instance, name, value)
