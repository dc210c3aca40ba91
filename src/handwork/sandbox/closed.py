"""What the rules of [policy] close in a workspace: found by a bounded search when a sandbox starts."""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from handwork.sandbox.survey import AT_START, SKIPPED, Bounds

Kind: TypeAlias = Literal["read", "write"]
_BOTH: tuple[Kind, ...] = ("read", "write")


def _nothing(kind: Kind, path: str, folder: bool) -> tuple[str, bool]:
    return "", True


@dataclass(frozen=True)
class Rules:
    """Rules that close paths.

    written: those that forbid something, as they were written.
    by: for a real absolute path, and whether it is a folder: the rule that forbids it ('' for none), and whether all below it
        stands the same.
    """

    written: Sequence[str] = ()
    by: Callable[[Kind, str, bool], tuple[str, bool]] = _nothing


@dataclass
class Closed:
    """What was found; paths are relative to the workspace, '' for itself.

    read, write: what is closed whole, each with its rule; nothing in here lies below another one of the same kind.
    passed: folders that are closed for writing, while something below may be free.
    watched: folders in which something that is closed may appear.
    unseen: folders that a rule leads to, and that were not looked at.
    complete: False if the search came to its bounds.
    """

    read: dict[str, str] = field(default_factory=dict)
    write: dict[str, str] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    watched: list[str] = field(default_factory=list)
    unseen: set[str] = field(default_factory=set)
    complete: bool = True


def find_closed(
    workspace: Path, rules: Rules, bounds: Bounds = AT_START, before: Callable[[str], object] = lambda folder: None
) -> Closed:
    """Look through the folders that a rule leads to, the upper levels first, and those that tools fill last; `before` is told
    each of them before it is listed."""
    return _Search(workspace, rules, bounds, before).run() if rules.written else Closed()


class _Search:
    def __init__(self, workspace: Path, rules: Rules, bounds: Bounds, before: Callable[[str], object]) -> None:
        self._base, self._rules, self._before = workspace, rules, before
        self._found = Closed()
        self._end = time.monotonic() + bounds.seconds
        self._left = bounds.folders

    def run(self) -> Closed:
        # Of reading the workspace itself stays open: what would be left of it is no place to work in.
        wanted: list[Kind] = [] if self._rules.by("read", str(self._base), True) == ("", True) else ["read"]
        rule, same = self._rules.by("write", str(self._base), True)
        if rule and same:
            self._found.write[""] = rule
        elif rule or not same:
            wanted.append("write")
        if wanted:
            self._walk(wanted)
        self._other_names()
        return self._found

    def _walk(self, wanted: Sequence[Kind]) -> None:
        queue, later = deque([("", wanted)]), deque[tuple[str, Sequence[Kind]]]()
        while queue or later:
            place, kinds = (queue or later).popleft()
            self._before(place)
            entries = self._entries(place) if self._may_go_on() else None
            if entries is None:
                self._found.unseen.add(place)
                if self._found.complete and place:
                    self._shut(place, kinds)
                continue
            self._found.watched.append(place)
            for entry in entries:
                path = f"{place}/{entry.name}" if place else entry.name
                if below := [kind for kind in kinds if self._look(kind, path, entry)]:
                    (later if entry.name in SKIPPED or entry.name == ".git" else queue).append((path, below))

    def _shut(self, place: str, kinds: Sequence[Kind]) -> None:
        # Programs are the folder's owner, too, and could open it again: what nobody can look at is closed whole.
        for kind in kinds:
            self._add(kind, place, next(rule for rule in self._rules.written if f" {kind} " in rule))

    def _may_go_on(self) -> bool:
        self._left -= 1
        self._found.complete = self._left >= 0 and time.monotonic() < self._end
        return self._found.complete

    def _look(self, kind: Kind, path: str, entry: os.DirEntry[str]) -> bool:
        """Take in what is closed whole; whether to look below."""
        folder = entry.is_dir(follow_symlinks=False)
        rule, same = self._rules.by(kind, f"{self._base}/{path}", folder)
        if folder and not same:
            if rule and kind == "write":
                self._found.passed.add(path)
            return not any(is_at(path, each) for each in self._of(kind))
        if not rule:
            return False
        if kind == "read" and entry.is_symlink():
            self._add(kind, self._inside(path), rule)  # nothing can be put over a link
        else:
            self._add(kind, path, rule)
        return False

    def _of(self, kind: Kind) -> dict[str, str]:
        return self._found.read if kind == "read" else self._found.write

    def _add(self, kind: Kind, path: str, rule: str) -> None:
        closed = self._of(kind)
        if not path or any(is_at(path, each) for each in closed):
            return
        for each in [each for each in closed if is_at(each, path)]:
            del closed[each]
        closed[path] = rule

    def _inside(self, path: str) -> str:
        """Where a link leads to in the workspace; '' for elsewhere, and for nowhere."""
        real = os.path.relpath(os.path.realpath(self._base / path), self._base)
        inside = real != "." and not real.startswith("../") and os.path.lexists(self._base / real)
        # A folder that holds the link itself is not what its name means to hide.
        return real if inside and not is_at(path, real) else ""

    # ---- further names of one file

    def _other_names(self) -> None:
        """A file that may not be read has its other names (hard links) closed as well."""
        files = {file: rule for path, rule in self._found.read.items() for file in self._linked(path)}
        if not files:
            return
        inodes = {inode for _, inode in files}
        for path, entry in self._everything(""):
            status = self._status(path) if entry.inode() in inodes else None
            if status is not None and (rule := files.get((status.st_dev, status.st_ino))):
                self._add("read", path, rule)

    def _linked(self, path: str) -> Iterator[tuple[int, int]]:
        paths = [path]
        if stat.S_ISDIR(getattr(self._status(path), "st_mode", 0)):
            paths = [inner for inner, _entry in self._everything(path)]
        for each in paths:
            status = self._status(each)
            if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                yield status.st_dev, status.st_ino

    def _status(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(self._base / path)
        except OSError:  # it went away between two looks
            return None

    def _everything(self, place: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        queue = deque([place])
        while queue and self._may_go_on():
            folder = queue.popleft()
            for entry in self._entries(folder) or ():
                path = f"{folder}/{entry.name}" if folder else entry.name
                yield path, entry
                if entry.is_dir(follow_symlinks=False):
                    queue.append(path)

    def _entries(self, place: str) -> list[os.DirEntry[str]] | None:
        try:
            with os.scandir(self._base / place) as entries:
                return list(entries)
        except OSError:
            return None


def is_at(path: str, place: str) -> bool:
    """Whether a path is a place or lies below it."""
    return path == place or path.startswith(f"{place}/") or not place
