"""What a workspace carries for Handwork: read once, so that what is shown, remembered and used are the same bytes."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

CONFIGS = ("handwork.toml", "config/config.toml")
"""Configuration; the first that is there counts."""
SERVERS = ("mcp.json", ".mcp.json", "config/mcp.json")
"""MCP servers; the one beside the configuration that counts, else the first that is there."""
AGENTS, SKILLS = ".handwork/agents", ".handwork/skills"
"""Folders: agents as Markdown files, skills as folders with all that lies in them."""
OTHERS = "config/config.toml"
"""Programs of other makers call a file of theirs so, too."""
LARGEST = 1_000_000
"""Bytes of one file."""
_FILES, _BYTES, _DEEPEST = 1_000, 20_000_000, 8
"""What one folder of agents or skills may hold."""


def _flags(*names: str) -> int:
    """What open() takes of these here: importing this works on systems that lack some."""
    return sum(getattr(os, name, 0) for name in names)


_FILE = _flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
_FOLDER = _flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")


@dataclass(frozen=True)
class Carried:
    """What lies in a workspace for us.

    folder: the real path of the workspace; inode: which folder that is, so that another one in its place is known.
    files: the content of each file, by its path in the workspace.
    refused: what is there and not read, whoever trusts the folder, each with the reason.
    """

    folder: Path
    inode: int = 0
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def digests(self) -> dict[str, str]:
        """What tells each content from any other."""
        return {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()}

    def first(self, names: Collection[str]) -> str | None:
        """The first of these files that is there."""
        return next((name for name in names if name in self.files), None)

    def without(self, names: Collection[str]) -> Carried:
        """The same but for some files."""
        files = {name: data for name, data in self.files.items() if name not in names}
        return Carried(self.folder, self.inode, files, self.refused)


def carried_by(workspace: Path, tables: Collection[str] = ()) -> Carried:
    """Look into a workspace; never raises, never waits for a pipe, and follows no link.

    Args:
        tables: the tables of our configuration. A `config/config.toml` that has none of them belongs to another program.
    """
    found = _Found(workspace)
    with suppress(OSError, ValueError, RuntimeError):
        found.folder = workspace.resolve(strict=True)
        root = os.open(found.folder, _FOLDER)
        try:
            found.inode = os.fstat(root).st_ino
            for name in (*CONFIGS, *SERVERS):
                found.read(root, name)
            for name in (AGENTS, SKILLS):
                found.walk(root, name, only=".md" if name == AGENTS else "")
        finally:
            os.close(root)
    if OTHERS in found.files and not _is_ours(found.files[OTHERS], tables):
        del found.files[OTHERS]
    return Carried(found.folder, found.inode, found.files, found.refused)


def _is_ours(data: bytes, tables: Collection[str]) -> bool:
    try:
        names = tomllib.loads(data.decode("utf-8-sig")).keys()
    except (ValueError, RecursionError):
        return True  # what it is can only be told to whoever looks
    return not names or not names.isdisjoint(tables)


class _Found:
    """Collects files below an open folder; every step on the way to one must be no link."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.inode = folder, 0
        self.files: dict[str, bytes] = {}
        self.refused: dict[str, str] = {}

    def read(self, root: int, name: str) -> None:
        """Take one file in, if it is there."""
        try:
            with _opened(root, name, _FILE) as file:
                self.files[name] = _content(file)
        except (FileNotFoundError, NotADirectoryError):
            self._maybe_behind_a_link(root, name)
        except OSError as error:
            self.refused[name] = _why(error)

    def walk(self, root: int, name: str, only: str) -> None:
        """Take in what lies in a folder (of files `only` those whose names end so); too much of it is none of it."""
        before = dict(self.files)
        try:
            with _opened(root, name, _FOLDER) as folder:
                self._below(folder, name, only, 1)
            taken = [data for path, data in self.files.items() if path not in before]
            if len(taken) > _FILES or sum(map(len, taken)) > _BYTES:
                raise OSError(f"it holds more than {_FILES:,} files or {_BYTES // 1_000_000} MB")
        except (FileNotFoundError, NotADirectoryError):
            self._maybe_behind_a_link(root, name)
        except OSError as error:
            self.files = before
            self.refused = {path: why for path, why in self.refused.items() if not path.startswith(f"{name}/")}
            self.refused[name] = _why(error)

    def _below(self, folder: int, name: str, only: str, depth: int) -> None:
        with os.scandir(folder) as entries:
            found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        for each, is_folder in found:
            path = f"{name}/{each}"
            if len(self.files) > 2 * _FILES or depth > _DEEPEST:
                raise OSError(f"it holds more than {_FILES:,} files or {_DEEPEST} levels")
            if is_folder and not only:
                with _opened(folder, each, _FOLDER) as inner:
                    self._below(inner, path, only, depth + 1)
            elif not is_folder and each.endswith(only):
                self._take(folder, each, path)

    def _take(self, folder: int, name: str, path: str) -> None:
        try:
            with _opened(folder, name, _FILE) as file:
                self.files[path] = _content(file)
        except OSError as error:
            self.refused[path] = _why(error)

    def _maybe_behind_a_link(self, root: int, name: str) -> None:
        with suppress(OSError):
            if stat.S_ISDIR(os.stat(name, dir_fd=root).st_mode) == (name in (AGENTS, SKILLS)):
                self.refused[name] = "it lies behind a link, and links are not followed"


@contextmanager
def _opened(folder: int, name: str, flags: int) -> Iterator[int]:
    """A file or folder below an open one. Raises OSError."""
    *before, last = PurePosixPath(name).parts
    steps: list[int] = []
    try:
        for part in before:
            steps.append(os.open(part, _FOLDER, dir_fd=steps[-1] if steps else folder))
        steps.append(os.open(last, flags, dir_fd=steps[-1] if steps else folder))
        yield steps[-1]
    finally:
        for step in steps:
            os.close(step)


def _content(file: int) -> bytes:
    mode = os.fstat(file).st_mode
    if not stat.S_ISREG(mode):
        raise OSError("it is a folder" if stat.S_ISDIR(mode) else "it is no file")
    with os.fdopen(file, "rb", closefd=False) as stream:
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(f"it is larger than {LARGEST:,} bytes")
    return data


def _why(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it is a link, and links are not followed"
    return error.strerror or str(error)
