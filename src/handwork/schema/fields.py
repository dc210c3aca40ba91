"""How a class's attributes become its constructor's keyword arguments, each instance with defaults of its own (CONTRACT A1)."""

from __future__ import annotations

import copy
import inspect
import re
from collections import deque
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

_CLASS_VAR = re.compile(r"(?:^|\.)ClassVar\b")


def construct(instance: object, given: dict[str, Any]) -> None:
    """Set the given fields on an instance, and a copy of its own of each mutable default that was not given.

    Fields are the annotated names of a class and its bases (but ClassVar), and the public class attributes without
    annotation that are no functions, descriptors or classes. Containers (list, dict, set, bytearray, deque) are copied all
    the way down, an object with a method `fresh()` is asked for another one, and anything else is shared as it is: a
    model or a lock cannot be copied, and whoever wrote it into the class meant this one.

    Raises TypeError for a name that is no field, with the nearest one.
    """
    cls: type = type(instance)
    names = fields_of(cls)
    if unknown := given.keys() - names:
        name = min(unknown)
        near = _nearest(name, names)
        hint = (
            f": did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"; the fields are {', '.join(sorted(names))}"
        )
        raise TypeError(f"{cls.__name__}() has no field {name!r}{hint}")
    memo: dict[int, Any] = {}
    for name in names - given.keys():
        default = getattr(cls, name, None)
        if (own := _own(default, memo)) is not default:
            setattr(instance, name, own)
    for name, value in given.items():
        setattr(instance, name, value)


def _nearest(name: str, names: frozenset[str]) -> list[str]:
    """The fields that may be meant: those that end with this word (`tools`: available_tools), else the nearest spelling."""
    return sorted(each for each in names if each.endswith(f"_{name}")) or get_close_matches(name, names, 1)


@lru_cache(maxsize=512)
def fields_of(cls: type) -> frozenset[str]:
    """The names that the constructor of this class takes."""
    names: set[str] = set()
    for base in cls.__mro__[:-1]:  # the last is object
        notes = inspect.get_annotations(base)
        names.update(name for name, note in notes.items() if not _CLASS_VAR.search(_text(note)))
        names.update(name for name in vars(base).keys() - notes.keys() if _holds_a_value(cls, name))
    return frozenset(name for name in names if not name.startswith("_") and not _is_fixed(cls, name))


def _text(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else repr(annotation)


def _holds_a_value(cls: type, name: str) -> bool:
    """Whether nowhere in the bases this name is behaviour: a method that a subclass replaced is still no field."""
    return not any(name in vars(base) and _is_behaviour(vars(base)[name]) for base in cls.__mro__)


def _is_behaviour(value: object) -> bool:
    return isinstance(value, type) or inspect.isroutine(value) or hasattr(type(value), "__get__")


def _is_fixed(cls: type, name: str) -> bool:
    """Whether it is a property that cannot be set."""
    value = inspect.getattr_static(cls, name, None)
    return isinstance(value, property) and value.fset is None


def _own(value: Any, memo: dict[int, Any]) -> Any:
    """A copy where an instance needs one of its own, else the value itself; what occurs twice is copied once."""
    if isinstance(value, type):
        return value
    if id(value) in memo:
        return memo[id(value)]
    if callable(getattr(type(value), "fresh", None)):
        return memo.setdefault(id(value), value.fresh())
    if isinstance(value, tuple) and type(value) is tuple:
        made = tuple(_own(item, memo) for item in value)
        return made if any(one is not two for one, two in zip(made, value, strict=True)) else value
    if not isinstance(value, (list, dict, set, bytearray, deque)):
        return value
    own = memo[id(value)] = copy.copy(value)
    if isinstance(own, dict):
        for key in own:
            own[key] = _own(own[key], memo)
    elif isinstance(own, (list, deque)):
        for index, item in enumerate(own):
            own[index] = _own(item, memo)
    return own
