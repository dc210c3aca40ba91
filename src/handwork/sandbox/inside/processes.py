"""The tree of processes as /proc shows it, and how to end one so that nothing slips away."""

from __future__ import annotations

import contextlib
import os
import signal

_ROUNDS = 30
"""How often a tree is searched for processes born meanwhile before everything is frozen."""
_CHASES = 1000
_TICKS = os.sysconf("SC_CLK_TCK")


class Row:
    """One process: its parent, its state letter and the number of its threads."""

    __slots__ = ("parent", "state", "threads")

    def __init__(self, parent: int, state: str, threads: int) -> None:
        self.parent, self.state, self.threads = parent, state, threads

    @property
    def alive(self) -> bool:
        """A process whose first thread has ended looks dead, though others of its threads go on."""
        return self.state not in "ZX" or self.threads > 1


def table() -> dict[int, Row]:
    """All processes that /proc shows."""
    rows = ((int(name), _read(name)) for name in os.listdir("/proc") if name.isdigit())
    return {pid: row for pid, row in rows if row is not None}


def _read(name: str) -> Row | None:
    fields = _stat(name)
    return Row(int(fields[1]), chr(fields[0][0]), int(fields[17])) if len(fields) > 17 else None


def _stat(name: str) -> list[bytes]:
    """The fields of /proc/…/stat from the state on; [] if the process is gone."""
    try:
        fd = os.open(f"/proc/{name}/stat", os.O_RDONLY)
    except OSError:
        return []
    try:
        data = os.read(fd, 1024)
    except OSError:
        return []
    finally:
        os.close(fd)
    # The name in parentheses may hold anything, parentheses too: count from the last one.
    return data[data.rfind(b")") + 2 :].split()


def _latest() -> int:
    """The number of the process that was born last."""
    fd = os.open("/proc/loadavg", os.O_RDONLY)
    try:
        return int(os.read(fd, 200).split()[4])
    finally:
        os.close(fd)


def descendants(rows: dict[int, Row], root: int) -> list[int]:
    """The living below `root`, parents before children; zombies are not alive."""
    children: dict[int, list[int]] = {}
    for pid, row in rows.items():
        children.setdefault(row.parent, []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        for pid in children.pop(queue.pop(), ()):
            queue.append(pid)
            if rows[pid].alive:
                found.append(pid)
    return found


def below(root: int) -> list[int]:
    """Those below `root`, zombies included: fewer reads than a table of all where the kernel names a thread's children."""
    found: list[int] = []
    queue = [root]
    while queue:
        pid = queue.pop()
        children = _children(pid)
        if children is None:
            return descendants(table(), root)
        found += children
        queue += children
    return found


def _children(pid: int) -> list[int] | None:
    """The children of all threads of a process; None where the kernel does not list them."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it has ended
        return found
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as file:
                found += map(int, file.read(1 << 16).split())
        except FileNotFoundError:
            if os.path.exists(f"/proc/{pid}/task/{thread}/stat"):
                return None
        except OSError:
            continue
    return found


def times(pid: int) -> tuple[float, float]:
    """The processor time of a process in seconds, and that of the children that it waited for."""
    fields = _stat(str(pid))
    if len(fields) < 15:
        return 0.0, 0.0
    return sum(map(int, fields[11:13])) / _TICKS, sum(map(int, fields[13:15])) / _TICKS


def born(pid: int) -> int:
    """When a process started, in ticks since the machine did; 0 if there is none."""
    fields = _stat(str(pid))
    return int(fields[19]) if len(fields) > 19 else 0


def status(pid: int, name: str = "status") -> dict[bytes, int]:
    """The sizes that a file of /proc tells of a process, in bytes; {} if it cannot be read."""
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
            lines = file.read(8192).split(b"\n")
    except OSError:
        return {}
    words = (line.split() for line in lines if line.endswith(b" kB"))
    return {word[0].rstrip(b":"): int(word[-2]) << 10 for word in words}


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def sweep(root: int, program: int = 0, keep: frozenset[int] = frozenset(), freeze: bool = False) -> bool:
    """Kill what lives below `root`; True if there was nothing to kill.

    Those of `keep` and all below them are spared; `program` in `keep` spares itself alone. Everything is stopped first, so
    that no process can start another between being seen and being killed; `freeze` stops the whole namespace meanwhile.
    """
    hunt = _Hunt(root, program, keep)
    frozen = freeze and os.getpid() == 1
    if frozen:
        # A fork bomb may outrun the search: the kernel stops the whole namespace in one go.
        os.kill(-1, signal.SIGSTOP)
    for _ in range(_ROUNDS):
        if not hunt.stop_newborn():
            break
    stopped = hunt.stopped
    for pid in stopped:
        send(pid, signal.SIGKILL)
    if frozen:
        os.kill(-1, signal.SIGCONT)
    return not stopped


class _Hunt:
    """One search for the tree below `root`: each process is read once and stopped as soon as it is seen."""

    def __init__(self, root: int, program: int, keep: frozenset[int]) -> None:
        self.root, self.program, self.keep = root, program, keep
        self.rows: dict[int, Row] = {}
        self.tree = {root} | (keep & {program})
        self.stopped: set[int] = set()

    def stop_newborn(self) -> bool:
        """Stop what was not seen before; False if there was nothing."""
        before = len(self.stopped)
        latest = _latest()
        for name in os.listdir("/proc"):
            if name.isdigit():
                self._meet(int(name))
        for pid in descendants(self.rows, self.root):  # parents may have higher numbers than their children
            if self.rows[pid].parent in self.tree:
                self._stop(pid)
        self._chase(latest)
        return len(self.stopped) > before

    def _chase(self, seen: int) -> None:
        # A whole listing takes so long that what is left of a fork bomb doubles many times over. The kernel counts
        # processes up, so those born since are the next numbers: to meet only them is faster than any forking.
        for _ in range(_CHASES):
            latest = _latest()
            if latest <= seen:  # nothing was born, or the count began anew: then the next listing finds it
                return
            for pid in range(seen + 1, latest + 1):
                self._meet(pid)
            seen = latest

    def _meet(self, pid: int) -> None:
        if pid in self.rows:
            return
        row = _read(str(pid))
        if row is not None:
            self.rows[pid] = row
            if row.parent in self.tree:
                self._stop(pid)

    def _stop(self, pid: int) -> None:
        if pid in self.keep or pid in self.stopped or not self.rows[pid].alive:
            return
        send(pid, signal.SIGSTOP)
        self.tree.add(pid)
        self.stopped.add(pid)
