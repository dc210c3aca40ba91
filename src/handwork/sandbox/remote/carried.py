"""The user's workspace where the sandbox is on another machine: sent there at the start, and brought back after each call."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from handwork.errors import SandboxError, SandboxUnavailable
from handwork.sandbox import beneath
from handwork.sandbox.base import Sandbox
from handwork.sandbox.guard import Guard
from handwork.sandbox.sentences import few

MOST_BYTES, MOST_FILES = 256 << 20, 20_000
LARGEST = 64 << 20
_CHUNK = 16 << 20
_SECONDS = 120.0
_UNPACK = "import sys,tarfile;tarfile.open(fileobj=sys.stdin.buffer,mode='r|gz').extractall('.')"
_LIST = (
    "import json,os,stat,sys\n"
    "found,missed={},[]\n"
    "for folder,names,files in os.walk('.',onerror=missed.append):\n"
    " for name in names+files:\n"
    "  path=os.path.relpath(os.path.join(folder,name),'.')\n"
    "  try: s=os.lstat(path)\n"
    "  except FileNotFoundError: continue\n"
    "  if not (stat.S_ISREG(s.st_mode) or stat.S_ISDIR(s.st_mode)): continue\n"
    "  if len(found)>=int(sys.argv[1]): missed.append(path)\n"
    "  else: found[path]=[stat.S_ISDIR(s.st_mode),s.st_size,s.st_mtime_ns,s.st_ino,stat.S_IMODE(s.st_mode)]\n"
    "json.dump([found,not missed],sys.stdout)\n"
)
_NOT_ALL = (
    "Not all files of the sandbox could be listed (too many, or folders that may not be read): those that were removed there "
    "stay in the user's folder."
)


@dataclass(frozen=True)
class _There:
    """What stands at a path on the other machine; two that are equal are the same content."""

    folder: bool
    size: int
    changed: int
    inode: int
    mode: int

    @classmethod
    def read(cls, said: Any) -> _There:
        """Raises TypeError or ValueError for what our program does not say."""
        folder, *numbers = said
        if not all(isinstance(number, int) for number in numbers):
            raise TypeError("no number")
        size, changed, inode, mode = numbers
        # A folder's time tells of its entries, which are looked at themselves.
        return cls(bool(folder), size, 0 if folder else changed, inode, mode)


class Carried:
    """`root` is a descriptor of the workspace out here, which `close` closes. Links stay where they are, and are not sent."""

    def __init__(self, workspace: Path, guard: Guard, hide: Sequence[Path]) -> None:
        self._workspace, self._guard, self._hide = workspace, guard, tuple(map(Path, map(os.path.realpath, hide)))
        self._root = beneath.open_folder(workspace)
        self._there: dict[str, _There] | None = None
        """What stood there at the last look; None until everything was sent."""
        self._here: dict[str, tuple[int, int, int]] = {}
        self._told = set[str]()

    def close(self) -> None:
        if self._root >= 0:
            root, self._root = self._root, -1
            os.close(root)
            self._guard.end()

    def check(self) -> None:
        """Raises SandboxUnavailable for a workspace that is too large to be sent."""
        self._files()

    async def send(self, sandbox: Sandbox) -> None:
        """Send everything. Raises SandboxError if it does not arrive."""
        for archive in await asyncio.to_thread(lambda: list(self._archives())):
            sent = await sandbox.exec(["python3", "-I", "-S", "-c", _UNPACK], stdin=archive, timeout=_SECONDS)
            if sent.exit_code:
                raise SandboxError(
                    f"The workspace could not be sent to the sandbox: {sent.stderr.decode(errors='replace')[-300:]}"
                )
        self._there, _whole = await self._list(sandbox)

    async def bring_back(self, sandbox: Sandbox) -> list[str]:
        """Do here what was done there since the last time; sentences for the model about what could not be."""
        if self._there is None:  # half of it is there: that is no change of anybody's
            return []
        before = self._there
        (now, whole), told = await self._list(sandbox), list[str]()
        # What was not listed may be there all the same: it counts as it was.
        self._there = now if whole else {**before, **now}
        for path in sorted(now):
            if now[path] != before.get(path) and not (now[path].folder and path in before):
                told += await self._fetch(sandbox, path, now[path])
        for path in sorted(set(before) - set(now), reverse=True) if whole else ():
            told += self._remove(path, before[path])
        told += [] if whole else [_NOT_ALL]
        told += self._guard.tidy()
        new = [sentence for sentence in told if sentence not in self._told]
        self._told.update(new)
        return few(new)

    # ---- there

    async def _list(self, sandbox: Sandbox) -> tuple[dict[str, _There], bool]:
        """What stands there, and whether that is all."""
        listed = await sandbox.exec(
            ["python3", "-I", "-S", "-c", _LIST, str(4 * MOST_FILES)], timeout=_SECONDS, max_output=64 << 20
        )
        try:
            found, whole = json.loads(listed.output)
            # What runs there may have answered in place of our program: every path is looked at again before it is used.
            return {path: _There.read(each) for path, each in found.items() if is_plain(path)}, whole is True
        except (ValueError, TypeError, AttributeError) as error:
            raise SandboxError(f"The files of the sandbox cannot be listed: {error}") from None

    # ---- here

    async def _fetch(self, sandbox: Sandbox, path: str, there: _There) -> list[str]:
        if why := self._guard.why(self._workspace / path):
            return [f"{path} stays in the sandbox and was not brought to the user's folder, as it is protected: {why}."]
        if self._changed_here(path):
            return [f"{path} was changed by the user meanwhile: the sandbox's version was not brought over it."]
        try:
            if there.folder:
                self._make_folders(f"{path}/x")
                return []
            if there.size > LARGEST:
                return [f"{path} is too large to be brought to the user's folder ({there.size} bytes)."]
            data = await sandbox.read(path, limit=LARGEST + 1)
            if len(data) > LARGEST:  # it has grown since it was listed
                return [f"{path} is too large to be brought to the user's folder."]
            self._make_folders(path)
            beneath.write(self._root, path, data, there.mode & 0o777)
        except (OSError, SandboxError) as error:
            return [f"{path} could not be brought to the user's folder: {error}"]
        self._note(path)
        return []

    def _remove(self, path: str, was: _There) -> list[str]:
        if self._guard.why(self._workspace / path) or self._changed_here(path):
            return [
                f"{path} was removed in the sandbox; the user's own stays, as it was changed meanwhile or is protected."
            ]
        with contextlib.suppress(OSError), beneath.parent_of(self._root, path) as (folder, name):
            (os.rmdir if was.folder else os.unlink)(name, dir_fd=folder)
        self._here.pop(path, None)
        return []

    def _changed_here(self, path: str) -> bool:
        status = beneath.look(self._root, path)
        if status is None:
            return path in self._here
        return not stat.S_ISDIR(status.st_mode) and _marks(status) != self._here.get(path)

    def _note(self, path: str) -> None:
        status = beneath.look(self._root, path)
        if status is not None and stat.S_ISREG(status.st_mode):
            self._here[path] = _marks(status)

    def _make_folders(self, path: str) -> None:
        for parent in reversed(PurePosixPath(path).parents):
            if str(parent) != ".":
                with contextlib.suppress(FileExistsError), beneath.parent_of(self._root, str(parent)) as (folder, name):
                    os.mkdir(name, dir_fd=folder)

    def _archives(self) -> Iterator[bytes]:
        files, folders = self._files()
        for start, part in _parts(files):
            data = io.BytesIO()
            with tarfile.open(fileobj=data, mode="w:gz", compresslevel=3) as tar:
                for path in folders if start else ():
                    entry = tarfile.TarInfo(path)
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(entry)
                for path, status in part:
                    content = beneath.read(self._root, path, status.st_size)
                    if content is not None:
                        entry = tarfile.TarInfo(path)
                        entry.size, entry.mode, entry.mtime = (
                            len(content),
                            stat.S_IMODE(status.st_mode),
                            status.st_mtime,
                        )
                        tar.addfile(entry, io.BytesIO(content))
                        self._here[path] = _marks(status)
            yield data.getvalue()

    def _files(self) -> tuple[list[tuple[str, os.stat_result]], list[str]]:
        files, folders, size = list[tuple[str, os.stat_result]](), list[str](), 0
        waiting = [""]
        while waiting:
            place = waiting.pop()
            for name in beneath.names(self._root, place):
                path = f"{place}/{name}" if place else name
                status = beneath.look(self._root, path)
                if status is None or self._workspace / path in self._hide:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    folders.append(path)
                    waiting.append(path)
                elif stat.S_ISREG(status.st_mode):
                    files.append((path, status))
                    size += status.st_size
            if size > MOST_BYTES or len(files) > MOST_FILES:
                raise SandboxUnavailable(
                    f"The workspace {self._workspace} is too large to be sent to another machine: more than "
                    f"{MOST_BYTES >> 20} MB or {MOST_FILES} files",
                    hint="name a smaller folder with --workspace, or use a sandbox of this machine",
                )
        return files, sorted(folders)


def _parts(files: list[tuple[str, os.stat_result]]) -> Iterator[tuple[bool, list[tuple[str, os.stat_result]]]]:
    """The files in parts of a bearable size, and whether it is the first part, which there always is."""
    part, size, first = list[tuple[str, os.stat_result]](), 0, True
    for each in files:
        if part and size + each[1].st_size > _CHUNK:
            yield first, part
            part, size, first = [], 0, False
        part.append(each)
        size += each[1].st_size
    yield first, part


def _marks(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ino


def is_plain(path: Any) -> bool:
    """Whether it names a place below a folder, and by one way alone."""
    return (
        isinstance(path, str)
        and bool(path)
        and "\0" not in path
        and not path.startswith("/")
        and all(part not in ("", ".", "..") for part in path.split("/"))
    )
