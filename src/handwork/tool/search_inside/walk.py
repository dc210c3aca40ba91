"""The files below a folder, in a stable order, without those that a project leaves out, hidden ones, and what links lead to."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from typing import NamedTuple

from .ignore import Rules, read_rules

_SPEAK = (".git", ".gitignore", ".ignore")
_ANY = "\x01"
"""A name that only a pattern for all names fits."""
Level = tuple[str, Rules]
"""A folder (its path with a slash at the end), and what is said there."""


class Found(NamedTuple):
    """Something below the folder: its path relative to it, and whether it is a `file`, `folder`, `link` or `other`."""

    path: str
    kind: str


class Levels(NamedTuple):
    """What the folders above say: .ignore comes before .gitignore, the deeper folder before the one above."""

    git: tuple[Level, ...] = ()
    own: tuple[Level, ...] = ()

    def entered(self, folder: str, names: Container[str]) -> Levels:
        """With what this folder says; a repository of its own has nothing of the rules of the one around it."""
        git, own = list(self.git), list(self.own)
        if ".git" in names:
            git = []
            _add(git, folder, joined(folder, ".git/info/exclude"))
        if ".gitignore" in names:
            _add(git, folder, joined(folder, ".gitignore"))
        if ".ignore" in names:
            _add(own, folder, joined(folder, ".ignore"))
        return Levels(tuple(git), tuple(own))

    def says(self, path: str, folder: bool) -> bool | None:
        """True for what is left out, False for what is taken back, None where nothing is said."""
        for levels in (self.own, self.git):
            for base, rules in reversed(levels):
                said = rules.says(path[len(base) :], folder)
                if said is not None:
                    return said
        return None


def _add(levels: list[Level], folder: str, file: str) -> None:
    rules = read_rules(file)
    if rules is not None:
        levels.append((folder.rstrip("/") + "/", rules))


def above(top: str, root: str) -> Levels:
    """What the folders from `top` down to the parent of `root` say about what lies in `root`.

    If they leave `root` itself out, they say nothing: whoever asks for it by its path wants to see what is in it.
    """
    levels, folder = Levels(), top
    for name in os.path.relpath(root, top).split("/") if root != top else []:
        levels = levels.entered(folder, [name for name in _SPEAK if os.path.lexists(joined(folder, name))])
        folder = joined(folder, name)
        if levels.says(folder, True) or levels.says(f"{folder}/{_ANY}", False):
            levels = Levels()
    return levels


class Walk:
    """Iterates over what lies below `root`; counts what was left out. `never` are folders that are not entered."""

    def __init__(self, root: str, levels: Levels, never: tuple[str, ...] = ()) -> None:
        self._root, self._levels, self._never = root, levels, never
        self.ignored = self.hidden = self.unreadable = 0

    def __iter__(self) -> Iterator[Found]:
        stack = [self._open(self._root, self._levels)]
        while stack:
            levels, entries = stack[-1]
            entry = next(entries, None)
            if entry is None:
                stack.pop()
                continue
            kind = _kind(entry)
            if not self._wanted(entry, levels, kind == "folder"):
                continue
            yield Found(entry.path[len(self._root.rstrip("/")) + 1 :], kind)
            if kind == "folder":
                stack.append(self._open(entry.path, levels))

    def _open(self, folder: str, levels: Levels) -> tuple[Levels, Iterator[os.DirEntry[str]]]:
        try:
            names = _entries(folder)
        except OSError:
            self.unreadable += 1
            names = {}
        return levels.entered(folder, names), iter([names[name] for name in sorted(names)])

    def _wanted(self, entry: os.DirEntry[str], levels: Levels, folder: bool) -> bool:
        said = levels.says(entry.path, folder)
        if said is None and entry.name.startswith("."):
            self.hidden += 1
            return False
        if said or entry.path in self._never or entry.name == ".git":
            self.ignored += bool(said)
            return False
        return True


def joined(folder: str, name: str) -> str:
    """The path of what lies in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def _entries(folder: str) -> dict[str, os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return {entry.name: entry for entry in entries}


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        return "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:
        return "other"
