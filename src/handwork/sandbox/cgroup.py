"""A control group for a sandbox, where we may make one: the kernel itself then holds what the supervisor only watches."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from handwork.sandbox.inside import processes
from handwork.sandbox.inside.watch import BOUND

_MOUNT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_PREFIX = "handwork"
_PERIOD = 100_000
_PATIENCE = 1.0
_numbers = itertools.count()


@dataclass(frozen=True)
class Group:
    """Folders of the control group, one a hierarchy."""

    folders: tuple[Path, ...]

    def hold(self, root: int) -> None:
        """Put a process and all below it into the group; what they start from then on is in it, too."""
        held: set[int] = set()
        while missing := {root, *processes.below(root)} - held:
            for pid in missing:
                for folder in self.folders:
                    with contextlib.suppress(ProcessLookupError):
                        (folder / "cgroup.procs").write_text(str(pid))
            held |= missing

    def ended_for_memory(self) -> int:
        """How many processes the kernel ended because the group had no memory left."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError):
                    words = dict(line.split() for line in (folder / name).read_text().splitlines())
                    return int(words.get("oom_kill", 0))
        return 0

    def end(self) -> None:
        """Kill whoever is still in the group, as those whose supervisor was killed by one of them, and take it away."""
        self.remove(kill=True)

    def remove(self, *, kill: bool = False) -> None:
        """Take the group away; the dead may need a moment to leave it. What stays is removed at a later start."""
        end = time.monotonic() + _PATIENCE
        left = list(self.folders)
        while left := [folder for folder in left if not _removed(folder)]:
            if time.monotonic() > end:
                return
            for folder in left if kill else ():
                _kill_all(folder)
            time.sleep(0.002)


def make(limits: Mapping[str, float], root: int, mount: Path = _MOUNT, own: Path = _OWN) -> Group | None:
    """A group with these limits (Limits.words) that holds `root` and all below it; None where there can be none.

    A group is made only where it is ours to make: in a hierarchy where nobody has put us into a group, or in a part that was
    delegated to us (a user's own, under systemd). What others manage is left alone; the supervisor's watch does without.
    """
    folders: list[Path] = []
    try:
        for parent, wanted in places(limits, mount, own):
            _clear(parent)
            folder = parent / _name()
            folder.mkdir()
            folders.append(folder)
            for file, value in wanted.items():
                if (folder / file).exists():
                    (folder / file).write_text(value)
        group = Group(tuple(folders))
        group.hold(root)
    except (OSError, ValueError):  # also of what is no number, or no text
        Group(tuple(folders)).remove()
        return None
    return group if folders else None


# ---- where


def possible(limits: Mapping[str, float]) -> bool:
    """Whether a group can be made here, as far as that is known without making one."""
    with contextlib.suppress(OSError, ValueError):
        return next(places(limits, _MOUNT, _OWN), None) is not None
    return False


def places(limits: Mapping[str, float], mount: Path, own: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Folders in which to make a group, and what to write into its files."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return
    paths = {controllers: path for _number, controllers, path in lines}
    if (mount / "cgroup.controllers").exists():
        parent, around = _delegated(mount, paths.get("", "/"))
        if parent is not None:
            yield parent, _unified(limits, around)
        return
    for controller, wanted in _separate(limits).items():
        if paths.get(controller) == "/" and os.access(mount / controller, os.W_OK):
            yield mount / controller, wanted


def _delegated(mount: Path, path: str) -> tuple[Path | None, int]:
    """The nearest group above ours that may have groups of ours, and the memory that those in between would allow."""
    around = 1 << 62
    here = mount / path.lstrip("/")
    while True:
        if _is_ours(here, mount) and {"memory", "pids"} & set(_words(here / "cgroup.subtree_control")):
            return here, around
        with contextlib.suppress(ValueError, IndexError):
            around = min(around, int(_words(here / "memory.max")[0]))
        if here == mount or not here.is_relative_to(mount):
            return None, around
        here = here.parent


def _is_ours(folder: Path, mount: Path) -> bool:
    if not os.access(folder, os.W_OK) or not os.access(folder / "cgroup.procs", os.W_OK):
        return False
    if os.getuid() or folder == mount:
        return True
    # Root may write everywhere: only what its manager has marked as given away is free.
    return any(_mark(folder, name) == b"1" for name in ("user.delegate", "trusted.delegate"))


def _mark(folder: Path, name: str) -> bytes:
    try:
        return os.getxattr(folder, name)
    except OSError:
        return b""


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


# ---- what


def _unified(limits: Mapping[str, float], around: int) -> dict[str, str]:
    wanted = {
        "memory.max": str(min(int(limits["memory"]), around)),
        "memory.swap.max": "0",
        "pids.max": str(int(limits["processes"]) * BOUND),
    }
    return wanted | ({"cpu.max": f"{int(limits['cpus'] * _PERIOD)} {_PERIOD}"} if limits["cpus"] else {})


def _separate(limits: Mapping[str, float]) -> dict[str, dict[str, str]]:
    memory = str(int(limits["memory"]))
    wanted = {
        "memory": {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory},
        "pids": {"pids.max": str(int(limits["processes"]) * BOUND)},
    }
    return wanted | ({"cpu": {"cpu.cfs_quota_us": str(int(limits["cpus"] * _PERIOD))}} if limits["cpus"] else {})


# ---- names, and what the dead left


def _name() -> str:
    # When a process started and its number together are a name that nobody else ever has.
    return f"{_PREFIX}-{os.getpid()}-{processes.born(os.getpid())}-{next(_numbers)}"


def _clear(parent: Path) -> None:
    """End and remove what is left of groups whose owner was killed."""
    for folder in parent.glob(f"{_PREFIX}-*-*-*"):
        pid, born = folder.name.split("-")[1:3]
        if pid.isdigit() and born.isdigit() and processes.born(int(pid)) != int(born):
            _kill_all(folder)
            _removed(folder)


def _kill_all(folder: Path) -> None:
    for pid in _words(folder / "cgroup.procs"):
        if pid != "0":  # of another namespace, which has no number here
            processes.send(int(pid), signal.SIGKILL)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
