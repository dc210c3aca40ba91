"""Memory that no process shows as its own: files in memory that are open and not mapped, and System V segments."""

from __future__ import annotations

import contextlib
import ctypes
import os

from . import processes

_REMOVE = 0  # IPC_RMID


def in_files(pid: int, seen: set[int]) -> int:
    """What the anonymous files in memory hold that a process has open, less what it has mapped of such memory, in bytes.

    A file that is in `seen` is some other process's already; those that are found are added to it.
    """
    total = 0
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{name}").startswith("/memfd:"):
                    file = os.stat(f"/proc/{pid}/fd/{name}")
                    total += 0 if file.st_ino in seen else file.st_blocks * 512
                    seen.add(file.st_ino)
    return max(total - processes.status(pid).get(b"RssShmem", 0), 0)


class Segments:
    """The segments of this namespace: they outlive whoever made them. Outside of one of our own they are other people's."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        if os.getpid() != 1:
            return
        with contextlib.suppress(OSError), open("/proc/sysvipc/shm", "rb") as table:
            names, *rows = (line.split() for line in table)
            number, size = names.index(b"shmid"), names.index(b"rss")
            self.sizes = {int(row[number]): int(row[size]) for row in rows}

    @property
    def total(self) -> int:
        return sum(self.sizes.values())

    def remove(self) -> None:
        """Have the kernel free them as soon as nobody uses them any more."""
        libc = ctypes.CDLL(None)
        for number in self.sizes:
            libc.shmctl(number, _REMOVE, None)
