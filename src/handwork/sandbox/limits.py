"""How much a sandbox may use of the machine, and the sentences that tell what was ended for it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handwork.config import SandboxSettings
from handwork.config.sizes import bytes_of

_FILE = 128 << 30
_DISK = 500 << 20
_SPARE = 512 << 20
_SMALLEST_ROOM = 64 << 20
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Limits:
    """`memory`, `file` and `disk_reserve` in bytes, `cpus` in processors (None: all), `processes` of all programs together."""

    processes: int
    memory: int
    file: int = _FILE
    disk_reserve: int = _DISK
    cpus: float | None = None

    @property
    def room(self) -> int:
        """How large each of the folders may grow that lie in memory (/tmp, the home, /dev/shm)."""
        return max(self.memory // 4, _SMALLEST_ROOM)

    def words(self) -> dict[str, float]:
        """What the supervisor is told of it."""
        return {
            "processes": self.processes,
            "memory": self.memory,
            "file": self.file,
            "reserve": self.disk_reserve,
            "cpus": self.cpus or 0,
        }


def limits_of(settings: SandboxSettings) -> Limits:
    """The limits of a sandbox on this machine. OpenManus's own keys, in a table of its own, are about its containers."""
    ours = not settings.describes_container
    given = settings.memory_limit if ours else None
    return Limits(
        processes=settings.process_limit,
        memory=bytes_of(given) if given else fit_memory(),
        file=bytes_of(settings.file_limit) if settings.file_limit else _FILE,
        disk_reserve=bytes_of(settings.disk_reserve) if settings.disk_reserve else _DISK,
        cpus=settings.cpu_limit if ours else None,
    )


def fit_memory() -> int:
    """Most of what this machine, or the container that we are in, has: the rest is ours and the user's."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    whole = min([whole, *_enclosing()])
    return max(whole - max(whole // 4, _SPARE), whole // 2)


def _enclosing() -> list[int]:
    """The limits on memory of the control groups that we are in, as far as they can be read."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    files: list[Path] = []
    for _number, controllers, path in (line.split(":", 2) for line in lines):
        if controllers in ("", "memory"):
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            # In a container the path is often that of outside, and the group itself stands at the top.
            files += [_CGROUPS / controllers / place.lstrip("/") / name for place in (path, "/")]
    found = []
    for file in files:
        with contextlib.suppress(OSError, ValueError):  # "max", or a group that is not shown here
            found.append(int(file.read_text()))
    return found


def low_disk(limits: Limits, workspace: Path) -> str:
    """A sentence for people where less is free than is to stay free; the supervisor then guards half of what there is."""
    try:
        disk = os.statvfs(workspace)
    except OSError:
        return ""
    free = disk.f_bavail * disk.f_frsize
    if free >= limits.disk_reserve:
        return ""
    return (
        f"{size(free)} are free on the disk of the workspace, less than the {size(limits.disk_reserve)} that are to stay free "
        f"([sandbox] disk_reserve): programs that write are ended only when {size(free // 2)} are left."
    )


def told(kind: str, limit: int) -> str:
    """What was ended and why, for the model and the user; `kind` as the supervisor says it, `limit` in its unit."""
    why = {
        "processes": f"together with others it had started more than {limit} processes",
        "threads": f"together with others it had started more than {limit} threads",
        "memory": f"together with others it used more than the memory limit of {size(limit)}",
        "machine": "the machine was about to run out of memory, and it used the most",
        "disk": f"less than {size(limit)} were left on the disk of the workspace, and it was writing",
    }
    return f"A program was ended: {why.get(kind, 'it broke a limit')}."


def said(news: Mapping[str, Any]) -> str:
    """What a message of the supervisor tells of a limit that was broken, in words; '' for any other. Who speaks may be another."""
    kind, limit = news.get("over"), news.get("limit")
    return told(kind, limit) if isinstance(kind, str) and isinstance(limit, int) and 0 <= limit < 1 << 62 else ""


def size(number: int) -> str:
    """A number of bytes for people: 512 MiB, 6 GiB."""
    for unit, word in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")):
        if number >= unit:
            return f"{number / unit:.3g} {word}"
    return f"{number} bytes"
