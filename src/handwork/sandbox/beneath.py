"""Reach into a workspace from outside, step by step by descriptors: no link is followed, so nothing leads elsewhere."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_BY_PATH = getattr(os, "O_PATH", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = _BY_PATH | getattr(os, "O_DIRECTORY", 0)
"""Other systems lack some; they import this, and run no sandbox."""
_LARGEST_COPY, _MOST_COPIED = 64 << 20, 2000


def open_folder(path: Path) -> int:
    """A descriptor of the folder with exactly this absolute path. Raises OSError, also where a part of it is a link."""
    fd = os.open("/", _FOLDER)
    return _descend(fd, path.parts[1:])


@contextlib.contextmanager
def parent_of(root: int, path: str) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder that holds `path` (relative to `root`), and the last name of it."""
    *folders, name = path.split("/")
    fd = _descend(os.dup(root), folders)
    try:
        yield fd, name
    finally:
        os.close(fd)


def open_path(root: int, path: str) -> int:
    """A descriptor (O_PATH) of what stands at `path`, whatever it is."""
    with parent_of(root, path) as (folder, name):
        return os.open(name or ".", _BY_PATH, dir_fd=folder)


def look(root: int, path: str) -> os.stat_result | None:
    """What stands at `path`, links not followed; None if nothing does, or nothing that can be reached without a link."""
    try:
        with parent_of(root, path) as (folder, name):
            return os.stat(name or ".", dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None


def names(root: int, path: str) -> list[str]:
    """The names in a folder; [] for what is none, or cannot be read."""
    try:
        fd = open_path(root, path) if path else os.dup(root)
    except OSError:
        return []
    try:
        return _names(fd)
    except OSError:
        return []
    finally:
        os.close(fd)


def present(root: int, path: str, wanted: Iterable[str]) -> list[str]:
    """Which of these names are there in a folder."""
    try:
        fd = _descend(os.dup(root), path.split("/"))
    except OSError:
        return []
    found = []
    try:
        for name in wanted:
            with contextlib.suppress(OSError):
                os.stat(name, dir_fd=fd, follow_symlinks=False)
                found.append(name)
    finally:
        os.close(fd)
    return found


def read(root: int, path: str, limit: int) -> bytes | None:
    """Up to `limit` bytes of a regular file; None for anything else."""
    try:
        with parent_of(root, path) as (folder, name):
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    try:
        return os.pread(fd, limit, 0) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(fd)


def move_out(root: int, path: str, target: Path) -> None:
    """Move what stands at `path` to `target`, which must not be there yet. Raises OSError.

    A rename where both lie on one file system; else it is given a name of no meaning first, then copied and removed.
    """
    with parent_of(root, path) as (folder, name):
        _unlock(folder, name)
        try:
            os.rename(name, target, src_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            aside = f"set-aside-{secrets.token_hex(4)}"
            os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
            try:
                _copy(folder, aside, target, [_LARGEST_COPY, _MOST_COPIED])
                _delete(folder, aside)
            except (OSError, RecursionError) as error:
                why = getattr(error, "strerror", None) or "it is too deep"
                raise OSError(
                    errno.EXDEV, f"it is called {aside} there now, since it cannot be copied: {why}"
                ) from error


def write(root: int, path: str, data: bytes, mode: int) -> None:
    """Put a regular file in place of whatever file or link stands at `path`, in one step. Raises OSError."""
    with parent_of(root, path) as (folder, name):
        aside = f"restoring-{secrets.token_hex(4)}"
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                os.fchmod(file.fileno(), mode)
            os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(aside, dir_fd=folder)
            raise


def _descend(fd: int, parts: Sequence[str]) -> int:
    try:
        for part in parts:
            if part in ("", "."):
                continue
            if part == "..":
                raise OSError(errno.EXDEV, "a path may not lead up")
            below = os.open(part, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = below
    except BaseException:
        os.close(fd)
        raise
    return fd


def _names(fd: int) -> list[str]:
    with os.scandir(f"/proc/self/fd/{fd}") as entries:  # a descriptor by O_PATH cannot be read itself
        return [entry.name for entry in entries]


def _unlock(folder: int, name: str) -> None:
    # A program may have taken our rights to move its work: the user owns it, so they can be had back, by the descriptor.
    with contextlib.suppress(OSError):
        fd = os.open(name, _BY_PATH, dir_fd=folder)
        try:
            for each in (folder, fd):
                mode = os.fstat(each).st_mode
                if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
                    Path(f"/proc/self/fd/{each}").chmod(stat.S_IMODE(mode) | 0o700)
        finally:
            os.close(fd)


def _copy(folder: int, name: str, target: Path, left: list[int]) -> None:
    """`left`: how many bytes, and how many files and folders, may still be copied."""
    left[1] -= 1
    if left[1] < 0:
        raise OSError(errno.EFBIG, "too many files to be copied")
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        target.symlink_to(os.readlink(name, dir_fd=folder))
    elif stat.S_ISDIR(status.st_mode):
        target.mkdir(mode=0o700)
        _unlock(folder, name)
        fd = os.open(name, _FOLDER, dir_fd=folder)
        try:
            for inner in _names(fd):
                _copy(fd, inner, target / inner, left)
        finally:
            os.close(fd)
    elif stat.S_ISREG(status.st_mode):
        left[0] -= status.st_size
        if left[0] < 0:
            raise OSError(errno.EFBIG, "too large to be copied")
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(source, "rb") as file, target.open("xb") as copy:
            copy.write(file.read(status.st_size))


def _delete(folder: int, name: str) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)
