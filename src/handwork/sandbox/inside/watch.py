"""What all programs together use, looked at every now and then: who has to end when it is too much of something."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from . import processes, unseen
from .jobs import Job

_SPARE = 512 << 20
"""What must stay available of the machine's memory, if a sixteenth of it is not less."""
_STEP = 4 << 20
THREADS = 8
"""So many threads may there be for each process of the limit."""
BOUND = 2 * THREADS
"""Where the kernel itself draws the line: far enough above that the watch is first, and the model is told."""
_ALWAYS = 20
"""After so many looks an exact one is due, though nothing seems to have grown."""


class Verdict:
    """`processes` of a job have to end, all of it if there are none; `kind` and `limit` say what they broke."""

    __slots__ = ("job", "kind", "limit", "processes")

    def __init__(self, job: Job, kind: str, limit: int, ended: Iterable[int] = ()) -> None:
        self.job, self.kind, self.limit, self.processes = job, kind, limit, list(ended)


class Floor:
    """Room that must stay: below it somebody is ended, and then no one else before half of what was left is gone, too.

    What filled it up may stay (files on a disk), or was there from the start: programs that make room must be able to run.
    """

    def __init__(self, wanted: int, now: int) -> None:
        self.wanted = wanted
        self.level = wanted if now >= wanted else now // 2

    def is_broken(self, now: int) -> bool:
        if now >= self.wanted:
            self.level = self.wanted
        return now < self.level

    def lower(self, now: int) -> None:
        self.level = now // 2


class Watch:
    """Looks at all jobs; `limits` are the words of our own Limits, in bytes and processes. `folders` are those that programs fill."""

    def __init__(self, limits: dict[str, float], folders: list[str]) -> None:
        self.processes, self.memory = int(limits["processes"]), int(limits["memory"])
        self.folders = folders
        self.threads = 1 << 30
        self.reference = self.step = 0
        self.turns = 0
        total, available = _meminfo()
        self.machine = Floor(min(_SPARE, total // 16), available)
        self.most = available
        self.last_free = _free(folders)
        self.disk = Floor(int(limits["reserve"]), self.last_free)
        self.written: dict[int, int] = {}

    def look(self, jobs: list[Job]) -> list[Verdict]:
        """Who has to end now. Cheap as long as little changes: three reads."""
        threads, available = _threads(), _meminfo()[1]
        self.turns += 1
        self.threads = min(self.threads, threads)
        self.reference = max(self.reference, available)
        self.most = max(self.most, available)
        grown = threads >= self.threads + self.processes // 4 or self.reference - available >= self.step
        low = self.machine.is_broken(available)
        found: list[Verdict] = []
        if grown or low or self.turns >= _ALWAYS:
            self.turns, self.threads, self.reference = 0, threads, available
            found += self._look_closely(jobs, available if low else None)
        return found or self._look_at_disk(jobs)

    # ---- processes and memory

    def _look_closely(self, jobs: list[Job], available: int | None) -> list[Verdict]:
        rows = processes.table()
        trees = {job: processes.descendants(rows, job.leader) for job in jobs}
        if sum(map(len, trees.values())) > self.processes:
            job = max(trees, key=lambda job: len(trees[job]))
            return [Verdict(job, "processes", self.processes)]
        if sum(rows[pid].threads for tree in trees.values() for pid in tree) > THREADS * self.processes:
            job = max(trees, key=lambda job: sum(rows[pid].threads for pid in trees[job]))
            return [Verdict(job, "threads", THREADS * self.processes)]
        used = {job: _memory(job, tree) for job, tree in trees.items()}
        for _ in range(2):  # twice: who ends between two reads leaves what he shared to those who are read later
            if _sum(used) > self.memory:
                used = {job: _shares(tree) for job, tree in used.items()}
        segments = unseen.Segments() if self._is_more_gone(_sum(used)) else None
        if segments:
            met: set[int] = set()
            used = {
                job: {pid: size + unseen.in_files(pid, met) for pid, size in tree.items()} for job, tree in used.items()
            }
        total = _sum(used) + (segments.total if segments else 0)
        self.step = max((self.memory - total) // 2, _STEP)
        # If others filled the machine, to end what is small here would help nobody.
        if total <= self.memory and (available is None or total <= available):
            return []
        if segments:
            segments.remove()
        if total > self.memory:
            return [_largest(used, "memory", self.memory)] if used else []
        self.machine.lower(available or 0)
        return [_largest(used, "machine", 0)] if used else []

    def _is_more_gone(self, seen: int) -> bool:
        """Whether much more of the machine's memory went than is seen in processes: then it pays to look elsewhere, too."""
        return self.most - self.reference - seen > min(self.memory, self.machine.wanted) // 4

    # ---- disk

    def _look_at_disk(self, jobs: list[Job]) -> list[Verdict]:
        free = _free(self.folders)
        fallen, self.last_free = self.last_free - free, free
        broken = self.disk.is_broken(free)
        if free > 2 * self.disk.wanted:
            self.written = {}
            return []
        if fallen <= 0 and not broken:  # a disk that is nearly full may be so for years
            return []
        before, self.written = self.written, {}
        rows = processes.table()
        writers: dict[int, tuple[int, Job]] = {}
        for job in jobs:
            for pid in processes.descendants(rows, job.leader):
                self.written[pid] = _written(pid)
                writers[pid] = (self.written[pid] - before.get(pid, 0), job)
        return self._blame(writers, free, max(fallen, 0)) if broken else []

    def _blame(self, writers: dict[int, tuple[int, Job]], free: int, fallen: int) -> list[Verdict]:
        most = max((size for size, _job in writers.values()), default=0)
        if most and most >= fallen // 4:
            self.disk.lower(free)
            guilty = [(pid, job) for pid, (size, job) in writers.items() if size >= most // 4]
            jobs = {job for _pid, job in guilty}
            return [
                Verdict(job, "disk", self.disk.wanted, [pid for pid, owner in guilty if owner is job]) for job in jobs
            ]
        if free < self.disk.level // 2 and writers:
            # Space can be taken without writing, and by who is gone already: then who is youngest here is most likely to go on.
            self.disk.lower(free)
            return [Verdict(writers[max(writers)][1], "disk", self.disk.wanted)]
        return []


def _sum(used: dict[Job, dict[int, int]]) -> int:
    return sum(sum(tree.values()) for tree in used.values())


def _largest(used: dict[Job, dict[int, int]], kind: str, limit: int) -> Verdict:
    job = max(used, key=lambda job: sum(used[job].values()))
    tree = used[job]
    pid = max(tree, key=lambda pid: tree[pid], default=0)
    # One large program is ended alone, so that the shell that it runs in lives on; of many small ones each would be replaced.
    return Verdict(job, kind, limit, [pid] if pid and tree[pid] > _sum(used) // 4 else ())


def _threads() -> int:
    """How many threads the machine has: one read, where counting the processes takes one for each."""
    with open("/proc/loadavg", "rb", buffering=0) as load:
        return int(load.read(200).split()[3].split(b"/")[1])


def _meminfo() -> tuple[int, int]:
    """The machine's memory and what of it is available, in bytes."""
    with open("/proc/meminfo", "rb", buffering=0) as info:
        lines = info.read(400).split(b"\n")
    found = {line.split(b":")[0]: int(line.split()[1]) << 10 for line in lines[:3] if len(line.split()) > 1}
    return found[b"MemTotal"], found.get(b"MemAvailable", found[b"MemFree"])


def _free(folders: list[str]) -> int:
    """The bytes that may still be written on the fullest disk of these folders; without any, as good as all."""
    room = [1 << 62]
    for folder in folders:
        with contextlib.suppress(OSError):
            disk = os.statvfs(folder)
            room.append(disk.f_bavail * disk.f_frsize)
    return min(room)


def _memory(job: Job, pids: list[int]) -> dict[int, int]:
    """What each holds that no file has; the job's peak is kept on the way."""
    found: dict[int, int] = {}
    for pid in pids:
        words = processes.status(pid)
        found[pid] = _own(words)
        job.peak = max(job.peak, words.get(b"VmHWM", 0))
    return found


def _own(words: dict[bytes, int]) -> int:
    """A process's own pages, and those that it shares in memory."""
    return words.get(b"RssAnon", words.get(b"VmRSS", 0)) + words.get(b"RssShmem", 0)


def _shares(tree: dict[int, int]) -> dict[int, int]:
    """The same with what several share divided among them: a fork of a large program takes next to nothing."""
    found: dict[int, int] = {}
    for pid in tree:
        words = processes.status(pid, "smaps_rollup")
        shares = words[b"Pss_Anon"] + words.get(b"Pss_Shmem", 0) if b"Pss_Anon" in words else None
        # Who may not be looked into counts in full, who has just ended for nothing.
        found[pid] = _own(processes.status(pid)) if shares is None else shares
    return found


def _written(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/io", "rb", buffering=0) as file:
            words = dict(line.split(b": ") for line in file.read(500).splitlines())
    except (OSError, ValueError):
        return 0
    return int(words.get(b"write_bytes", 0))
