"""Puts back what a step changed: whatever somebody changed after it stays as it is, and is named."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from handwork.cli.undo.copies import Copies, Damaged, write_all
from handwork.cli.undo.entries import Entry, same
from handwork.cli.undo.steps import Step
from handwork.cli.undo.tree import FOLDER, Tree, look_at

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_OPEN = 0o700
_TEMPORARY = ".handwork-undo"


_LATER = "it was changed after the step"
_Part = Callable[[str, int, str, Entry | None, Entry | None], None]


class _Later(Exception):
    """Somebody changed it after the step."""


@dataclass
class Restoring:
    """One step being taken back. It may be begun anew after it broke off: what is as it was before is left alone."""

    tree: Tree
    copies: Copies
    step: Step
    done: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def parted(self) -> list[str]:
        """Files that had several names, and have content of their own now: a file is put back by an atomic rename."""
        return [path for path in self.done if any(entry and entry.names > 1 for entry in self.step[path])]

    def run(self) -> None:
        """Raises OSError where it makes no sense to go on (the disk is full)."""
        top_down = sorted(self.step, key=lambda path: path.count("/"))
        for path in top_down:
            self._try(path, self._unlock)
        for path in reversed(top_down):
            self._try(path, self._remove)
        for path in top_down:
            self._try(path, self._put)
        for path in reversed(top_down):
            self._try(path, self._lock)

    def _try(self, path: str, part: _Part) -> None:
        if path in self.skipped:
            return
        before, after = self.step[path]
        try:
            with self.tree.parent(path) as (folder, name):
                part(path, folder, name, before, after)
        except _Later:
            self.skipped[path] = _LATER
        except (FileNotFoundError, NotADirectoryError):
            if (
                before is not None and part == self._put
            ):  # else it has gone with its folder, or that is yet to come back
                self.skipped[path] = "its folder is gone"
        except Damaged:
            self.skipped[path] = "its copy is damaged"
        except OSError as error:
            if error.errno in _FULL:
                raise
            self.skipped[path] = _why(error)

    def _unlock(self, path: str, folder: int, name: str, before: Entry | None, after: Entry | None) -> None:
        """A folder that the step closed would keep its content from being put back."""
        closed = after is not None and after.kind == "folder" and after.mode & _OPEN != _OPEN
        if after is not None and closed and same(look_at(folder, name), after):
            _change_mode(folder, name, after.mode | _OPEN)

    def _remove(self, path: str, folder: int, name: str, before: Entry | None, after: Entry | None) -> None:
        """Take away what the step made, and what now stands where something of another kind was."""
        if after is None or (before is not None and before.kind == after.kind):
            return
        if (now := look_at(folder, name)) is None or same(now, before):
            return
        if after.kind == "folder" and now.kind == "folder":
            _remove_folder(folder, name)
        elif same(now, after):
            os.unlink(name, dir_fd=folder)
        else:
            raise _Later
        if before is None:
            self.done.append(path)

    def _put(self, path: str, folder: int, name: str, before: Entry | None, after: Entry | None) -> None:
        if before is None:
            return
        now = look_at(folder, name)
        if before.kind == "folder":
            self._put_folder(path, folder, name, now)
        elif not same(now, before):
            expected = after if after is not None and after.kind == before.kind else None
            self._replace(folder, name, before, now, expected)
            self.done.append(path)

    def _put_folder(self, path: str, folder: int, name: str, now: Entry | None) -> None:
        if now is None:
            os.mkdir(name, 0o700, dir_fd=folder)
            self.done.append(path)
        elif now.kind != "folder":
            raise _Later

    def _replace(self, folder: int, name: str, before: Entry, now: Entry | None, expected: Entry | None) -> None:
        if not same(now, expected):
            raise _Later
        with contextlib.suppress(FileNotFoundError):  # of an attempt that broke off
            os.unlink(_TEMPORARY, dir_fd=folder)
        try:
            if before.kind == "link":
                os.symlink(before.held, _TEMPORARY, dir_fd=folder)
            else:
                self._write(folder, before)
            if not same(look_at(folder, name), expected):  # last, so that next to nothing happens before the rename
                raise _Later
            os.rename(_TEMPORARY, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(_TEMPORARY, dir_fd=folder)
            raise

    def _write(self, folder: int, before: Entry) -> None:
        fd = os.open(_TEMPORARY, _NEW, 0o600, dir_fd=folder)
        try:
            self.copies.fetch(before.held, lambda data: write_all(fd, data))
            os.fchmod(fd, before.mode)
            os.utime(fd, ns=(before.modified, before.modified))
        finally:
            os.close(fd)

    def _lock(self, path: str, folder: int, name: str, before: Entry | None, after: Entry | None) -> None:
        if before is None or before.kind != "folder":
            return
        now = look_at(folder, name)
        if now is None or now.kind != "folder" or now.mode == before.mode:
            return
        if path not in self.done and (after is None or now.mode not in (after.mode, after.mode | _OPEN)):
            raise _Later
        _change_mode(folder, name, before.mode)
        if path not in self.done:
            self.done.append(path)


def _remove_folder(folder: int, name: str) -> None:
    fd = os.open(name, FOLDER, dir_fd=folder)
    try:
        with contextlib.suppress(OSError):
            _remove_bytecode(fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=folder)


def _remove_bytecode(folder: int) -> None:
    """What Python made beside a step's own files goes with them."""
    fd = os.open("__pycache__", FOLDER, dir_fd=folder)
    try:
        for found in os.listdir(fd):
            if found.endswith(".pyc"):
                os.unlink(found, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir("__pycache__", dir_fd=folder)


def _change_mode(folder: int, name: str, mode: int) -> None:
    if hasattr(os, "O_PATH"):
        fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.chmod(f"/proc/self/fd/{fd}", mode)  # a folder that may not be read has no other descriptor
        finally:
            os.close(fd)
    else:
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)


def _why(error: OSError) -> str:
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
        return "it holds other files"
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return _LATER
    return (error.strerror or str(error)).lower()
