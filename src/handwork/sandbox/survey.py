"""What lies in a workspace that its sandbox has to know: repositories, protected names and sockets, by a bounded search."""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from handwork.sandbox import git_config, protected

SKIPPED = {
    "node_modules", "bower_components", "__pycache__", "site-packages", ".venv", "venv", ".tox", ".nox", ".cache",
    ".mypy_cache", ".ruff_cache", ".pytest_cache", "target", "dist", "build", ".gradle", ".terraform", ".next",
}  # fmt: skip
"""Folders that tools fill by the thousand, and in which nobody keeps repositories."""
_SETTINGS = 1 << 20
_MODULES_DEEP = 4


@dataclass(frozen=True)
class Bounds:
    """How far a search goes: folders read, levels below the workspace, seconds."""

    folders: int = 2000
    depth: int = 6
    seconds: float = 1.0


AT_START = Bounds()
AT_END = Bounds(folders=10_000, depth=12, seconds=1.0)


@dataclass
class Survey:
    """What was found; paths are relative to the workspace, '' for itself.

    roots: the workspace, and the folders of repositories within; the protected names count in these.
    repositories: git folders (`.git`, bare ones, those of submodules and work trees).
    existing: why each protected path that is there is protected.
    named: the same of paths that the settings of a repository name, whether they are there or not.
    complete: False if the search came to its bounds.
    """

    roots: list[str] = field(default_factory=list)
    repositories: list[str] = field(default_factory=list)
    existing: dict[str, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    sockets: list[str] = field(default_factory=list)
    complete: bool = True


def survey(workspace: Path, bounds: Bounds = AT_START) -> Survey:
    """Look through a workspace, the upper levels first; what may not be read, or goes away meanwhile, is passed over."""
    return _Search(workspace, bounds).run()


class _Search:
    def __init__(self, workspace: Path, bounds: Bounds) -> None:
        self._base, self._bounds = workspace, bounds
        self._found = Survey()
        self._git_folders = set[str]()

    def run(self) -> Survey:
        found, end = self._found, time.monotonic() + self._bounds.seconds
        queue, read = deque([("", 0)]), 0
        while queue:
            if read >= self._bounds.folders or time.monotonic() > end:
                found.complete = False
                break
            place, level = queue.popleft()
            read += 1
            below = self._folder(place)
            if level < self._bounds.depth:
                queue.extend((each, level + 1) for each in below)
            elif below:
                found.complete = False
        found.existing |= {path: why for path, why in found.named.items() if self._is_there(path)}
        return found

    def _folder(self, place: str) -> list[str]:
        """Take in one folder; returns those below it that are to be looked through as well."""
        entries = list(self._entries(place))
        names = {protected.fold(entry.name): entry for entry in entries}
        if {"head", "objects", "refs"} <= names.keys():
            self._git_folder(place, place)
            return []
        if place == "" or ".git" in names:
            self._root(place, entries)
        folders = []
        for entry in entries:
            path = _join(place, entry.name)
            if entry.is_dir(follow_symlinks=False):
                name = protected.fold(entry.name)
                if name != ".git" and name not in SKIPPED:
                    folders.append(path)
            elif _is_socket(entry):
                self._found.sockets.append(path)
        return folders

    def _root(self, place: str, entries: list[os.DirEntry[str]]) -> None:
        self._found.roots.append(place)
        for entry in entries:
            name, path = protected.fold(entry.name), _join(place, entry.name)
            if name == ".git":
                self._git_entry(place, path, entry)
            elif name in protected.FOLDERS and entry.is_dir(follow_symlinks=False):
                for inner in self._entries(path):
                    self._protect(_join(path, inner.name), protected.reason([entry.name, inner.name]))
                    if inner.is_dir(follow_symlinks=False):
                        for last in self._entries(_join(path, inner.name)):
                            why = protected.reason([entry.name, inner.name, last.name])
                            self._protect(_join(path, inner.name, last.name), why)
            else:
                self._protect(path, protected.reason([entry.name]))

    def _protect(self, path: str, why: str) -> None:
        if why:
            self._found.existing[path] = why

    def _git_entry(self, place: str, path: str, entry: os.DirEntry[str]) -> None:
        if entry.is_dir(follow_symlinks=False):
            self._git_folder(path, place)
            return
        self._protect(path, protected.POINTER)  # a file or a link: what it leads to is one only if it lies in here
        if entry.is_symlink():
            target = os.path.realpath(self._base / path)
        else:
            said = self._text(path).partition("\0")[0].strip()
            target = os.path.realpath(self._base / place / said.removeprefix("gitdir:").strip())
        if (inner := self._inside(target)) and _is_folder(target):
            self._git_folder(inner, place)

    def _git_folder(self, path: str, tree: str) -> None:
        """Take in a git folder whose files lie in `tree`, with those of its submodules and work trees."""
        if path in self._git_folders:
            return
        self._git_folders.add(path)
        self._found.repositories.append(path)
        for entry in self._entries(path):
            below = _join(path, entry.name)
            self._protect(below, protected.git_reason([entry.name]))
            name = protected.fold(entry.name)
            if name in ("config", "config.worktree") and entry.is_file(follow_symlinks=False):
                self._named(below, tree)
            elif name in ("modules", "worktrees") and entry.is_dir(follow_symlinks=False):
                self._git_folders_below(below, _MODULES_DEEP)
            elif _is_socket(entry):
                self._found.sockets.append(below)

    def _git_folders_below(self, path: str, depth: int) -> None:
        for entry in list(self._entries(path)):
            if not entry.is_dir(follow_symlinks=False):
                continue
            below = _join(path, entry.name)
            if os.path.lexists(self._base / below / "HEAD"):
                self._git_folder(below, "")
            elif depth:
                self._git_folders_below(below, depth - 1)

    def _named(self, settings: str, tree: str) -> None:
        """What the settings have git run or read in the workspace, though it lies outside of the git folder."""
        hooks, files = git_config.paths(self._text(settings))
        bases = [(tree, hook) for hook in hooks] + [(settings.rpartition("/")[0], file) for file in files]
        for base, path in bases:
            full = os.path.normpath(self._base / base / path)
            if not path.startswith(("~", "%")) and (inner := self._inside(full)):
                self._found.named[inner] = protected.NAMED_BY_GIT

    def _inside(self, full: str) -> str:
        """A path in the workspace as a relative one; '' for the workspace itself and what lies elsewhere."""
        inner = os.path.relpath(full, self._base)
        return "" if inner == "." or inner.split("/")[0] == ".." else inner

    def _is_there(self, path: str) -> bool:
        return os.path.lexists(self._base / path)

    def _entries(self, place: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(self._base / place) as entries:
                yield from entries
        except OSError:
            return

    def _text(self, path: str) -> str:
        try:
            fd = os.open(self._base / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            return os.read(fd, _SETTINGS).decode(errors="replace") if stat.S_ISREG(os.fstat(fd).st_mode) else ""
        finally:
            os.close(fd)


def _is_socket(entry: os.DirEntry[str]) -> bool:
    if entry.is_file(follow_symlinks=False) or entry.is_symlink() or entry.is_dir(follow_symlinks=False):
        return False
    try:
        return stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:  # the name is too long, say
        return False


def _join(*parts: str) -> str:
    return "/".join(filter(None, parts))
