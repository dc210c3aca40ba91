"""Looks at the workspace before and after each step, keeps what changes, and takes steps back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from handwork.cli.undo.copies import Copies
from handwork.cli.undo.entries import LARGEST, Entry, same
from handwork.cli.undo.folder import UndoFolder
from handwork.cli.undo.restore import Restoring
from handwork.cli.undo.steps import Step, Steps
from handwork.cli.undo.tree import Found, TooMany, Tree

MOST_THINGS = 20_000
MOST_BYTES = 512 << 20
MOST_STEPS = 200
_SPARE = 512 << 20
"""Bytes that the first copy leaves free on the disk."""


class TooLarge(Exception):
    """The workspace is larger than what is copied, or the disk has no room for it."""


@dataclass(frozen=True)
class Undone:
    """`files` are as they were before the step; `skipped` are paths with the reason why they were left as they are; `why` says
    why nothing was done, or why it broke off."""

    files: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    why: str = ""


class Watch:
    """Everything is opened at the first look. Raises OSError and TooLarge."""

    def __init__(
        self, workspace: Path, folder: Path, tell: Callable[[str, str], None], private: Sequence[Path]
    ) -> None:
        self._workspace, self._tell, self._private = workspace, tell, (*private, folder.parent)
        self._folder = UndoFolder(folder)
        self._open: _Open | None = None
        self._stopping = False

    def before_step(self) -> None:
        opened = self._opened()
        opened.seen = self._look(opened)

    def after_step(self) -> None:
        opened = self._opened()
        if (before := opened.seen) is None:
            return
        opened.seen = after = self._look(opened)
        if step := self._changes(before, after):
            opened.steps.add(step)
            self._shrink(opened)

    def undo(self) -> Undone:
        opened = self._opened()
        if (step := opened.steps.last) is None:
            return Undone(why="no step has changed a file")
        restoring = Restoring(opened.tree, opened.copies, step)
        restoring.run()
        opened.steps.drop_last()
        for path in restoring.parted:
            self._tell(shown(path), "it had several names, and is a file of its own now")
        skipped = ((shown(path), why) for path, why in sorted(restoring.skipped.items()))
        return Undone(tuple(map(shown, sorted(restoring.done))), tuple(skipped))

    def stop(self) -> None:
        """Let a copy that another thread makes end early."""
        self._stopping = True

    def close(self) -> None:
        """What the steps need stays."""
        if self._open is None:
            return
        self._open.tree.close()
        if wanted := set(self._open.steps.contents()):
            self._open.copies.drop_all_but(wanted)
        self._folder.close(keep=bool(len(self._open.steps)))
        self._open = None

    def give_up(self) -> None:
        """Nothing stays."""
        if self._open is not None:
            self._open.tree.close()
            self._open = None
        self._folder.close(keep=False)

    def _opened(self) -> _Open:
        if self._open is None:
            tree = Tree(self._workspace, self._private)
            try:
                folder = self._folder.open()
                self._open = _Open(
                    tree, Copies(folder / "contents"), Steps(folder / "steps.jsonl", ["handwork undo 1", *tree.place])
                )
            except BaseException:
                tree.close()
                raise
        if not self._open.tree.is_there():
            raise TooLarge("the folder was moved or replaced")
        return self._open

    def _look(self, opened: _Open) -> Found:
        known = opened.seen.entries if opened.seen else {}
        try:
            found = opened.tree.walk(known, MOST_THINGS)
        except TooMany as error:
            raise TooLarge(f"it holds more than {MOST_THINGS:,} files and folders") from error
        new = [path for path, entry in found.entries.items() if known.get(path) is not entry and entry.kind != "folder"]
        self._check_room(opened, found, new)
        for path in new:
            if self._stopping:
                raise TooLarge("it is closed")
            found.entries[path] = _keep(opened, path, found.entries[path])
        return found

    def _check_room(self, opened: _Open, found: Found, new: list[str]) -> None:
        sizes = {path: entry.size for path, entry in found.entries.items() if entry.kind == "file"}
        if sum(size for size in sizes.values() if size <= LARGEST) > MOST_BYTES:
            raise TooLarge(f"its files are more than {MOST_BYTES >> 20} MB")
        wanted = sum(size for path in new if (size := sizes.get(path, 0)) <= LARGEST)
        if shutil.disk_usage(self._folder.path).free < wanted + _SPARE:
            raise TooLarge(f"the disk of {self._folder.path} has too little room for a copy")

    def _changes(self, before: Found, after: Found) -> Step:
        step: Step = {}
        for path in before.entries.keys() | after.entries.keys():
            was, now = before.entries.get(path), after.entries.get(path)
            if was is now or same(was, now) or before.hides(path) or after.hides(path):
                continue
            if was is None or was.kept:
                step[path] = was, now
            else:
                self._tell(shown(path), _why_not(was))
        for path in before.opaque ^ after.opaque:
            self._tell(shown(path), "it cannot be looked into")
        for path in before.git.keys() | after.git.keys():
            if before.git.get(path) != after.git.get(path):
                self._tell(shown(path), "a repository's own state")
        return step

    def _shrink(self, opened: _Open) -> None:
        """Old steps go when there are too many, or their contents too large."""
        while len(opened.steps) > MOST_STEPS:
            opened.steps.drop_first()
        if opened.copies.size <= 2 * MOST_BYTES:
            return
        assert opened.seen is not None
        now = {entry.held for entry in opened.seen.entries.values() if entry.kind == "file"}
        opened.copies.drop_all_but(now | set(opened.steps.contents()))
        while opened.copies.size > 2 * MOST_BYTES and len(opened.steps) > 1:
            opened.steps.drop_first()
            opened.copies.drop_all_but(now | set(opened.steps.contents()))


@dataclass
class _Open:
    tree: Tree
    copies: Copies
    steps: Steps
    seen: Found | None = None


def _keep(opened: _Open, path: str, entry: Entry) -> Entry:
    """The entry with its content kept, or without one where it is too large or cannot be read."""
    try:
        if entry.kind == "link":
            with opened.tree.parent(path) as (folder, name):
                return replace(entry, held=os.readlink(name, dir_fd=folder))
        if entry.kind != "file" or entry.size > LARGEST:
            return entry
        fd = opened.tree.open(path)
    except OSError:
        return entry
    try:
        entry = Entry.of(os.fstat(fd))  # before its content is read: what changes meanwhile is seen at the next look
        return replace(entry, held=opened.copies.keep(fd, LARGEST) or "")
    finally:
        os.close(fd)


def shown(path: str) -> str:
    """A path as text that can be printed and stored: names in a workspace need not be UTF-8."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _why_not(entry: Entry) -> str:
    if entry.kind == "other":
        return "no regular file"
    return f"larger than {LARGEST >> 20} MB" if entry.size > LARGEST else "it could not be read"
