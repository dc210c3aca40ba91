"""Which paths a rule names."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache

from handwork.policy.match import Match

ANY = ("*", "**")
"""Patterns that name everything."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where relative paths and `~` lead to, both real."""

    workspace: str = "/"
    home: str = "/"

    def absolute(self, path: str) -> str:
        """The path from the root on, without `.` and `..`."""
        if path == "~" or path.startswith("~/"):
            path = f"{self.home}/{path[2:]}"
        text = posixpath.normpath(posixpath.join(self.workspace, path))
        return "/" + text.lstrip("/")


def is_real(path: str) -> bool:
    """Whether a path has the form that `Sandbox.resolve` gives it."""
    return path.startswith("/") and not path.startswith("//") and posixpath.normpath(path) == path


def real_pattern(pattern: str, place: Place) -> str:
    """The pattern with the real path of its beginning: what links on the way to it lead to."""
    if pattern in ANY or "://" in pattern:
        return pattern
    parts = place.absolute(pattern).split("/")
    fixed = next((number for number, part in enumerate(parts) if _is_wild(part)), len(parts))
    return "/".join([os.path.realpath("/".join(parts[:fixed]) or "/").rstrip("/"), *parts[fixed:]]) or "/"


def path_match(pattern: str, resource: str, place: Place) -> Match:
    """How surely a pattern names a resource.

    `*` is one name or a part of one, `**` any folders; a folder stands for all that is below it. A resource that is a folder above
    what the pattern names may be used to reach it. A path that is not real is taken for what it seems to be.
    """
    if pattern in ANY:
        return Match.YES
    if resource in ("", "*"):
        return Match.MAYBE
    if "://" in resource or "://" in pattern:
        return Match.YES if f"{resource}/".startswith(f"{pattern.rstrip('/')}/") else Match.NO
    return compiled(place.absolute(pattern)).match(place.absolute(resource))


class Pattern:
    """A pattern by its parts: names, names with `*` or `?`, and None for `**`."""

    def __init__(self, pattern: str) -> None:
        names = [name for name in pattern.split("/") if name]
        while len(names) > 1 and names[-1] == "**":
            names.pop()
        self._parts = [None if name == "**" else _name(name) for name in names]
        fixed = next((number for number, name in enumerate(names) if _is_wild(name)), len(names))
        self._begins = names[:fixed]

    def match(self, path: str) -> Match:
        """How surely it names an absolute path."""
        names = [name for name in path.split("/") if name]
        if self._covers(names):
            return Match.YES
        return Match.MAYBE if self._begins[: len(names)] == names else Match.NO

    def leads_to(self, path: str) -> bool:
        """Whether it may name something below a path."""
        states = self._closure({0})
        for name in filter(None, path.split("/")):
            if any(state < len(self._parts) and self._parts[state] is None for state in states):
                return True  # behind ** anything may follow
            states = self._closure({after for state in states for after in self._after(state, name)})
        return bool(states - {len(self._parts)})

    def _covers(self, names: list[str]) -> bool:
        states = self._closure({0})
        for name in names:
            if len(self._parts) in states:
                return True
            states = self._closure({after for state in states for after in self._after(state, name)})
        return len(self._parts) in states

    def _after(self, state: int, name: str) -> list[int]:
        if state == len(self._parts):
            return []
        part = self._parts[state]
        if part is None:
            return [state]
        return [state + 1] if part.match(name) else []

    def _closure(self, states: set[int]) -> set[int]:
        found = set(states)
        for state in states:
            while state < len(self._parts) and self._parts[state] is None:
                state += 1
                found.add(state)
        return found


def _is_wild(name: str) -> bool:
    return "*" in name or "?" in name


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Pattern:
    """The pattern of an absolute path, read once."""
    return Pattern(pattern)


def _name(name: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(name.replace("[", "[[]")))
