"""The tree of processes as /proc shows it, and how to end one so that nothing slips away."""

from __future__ import annotations

import contextlib
import os
import signal

_ROUNDS = 30
"""How often a tree is searched for processes born meanwhile before everything is frozen."""


class Row:
    """One process: its parent and its state letter."""

    __slots__ = ("parent", "state")

    def __init__(self, parent: int, state: str) -> None:
        self.parent, self.state = parent, state


def table() -> dict[int, Row]:
    """All processes that /proc shows."""
    rows = ((int(name), _read(name)) for name in os.listdir("/proc") if name.isdigit())
    return {pid: row for pid, row in rows if row is not None}


def _read(name: str) -> Row | None:
    try:
        fd = os.open(f"/proc/{name}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        data = os.read(fd, 1024)
    except OSError:
        return None
    finally:
        os.close(fd)
    # The name in parentheses may hold anything, parentheses too: count from the last one.
    fields = data[data.rfind(b")") + 2 :].split()
    return Row(int(fields[1]), chr(fields[0][0])) if len(fields) > 1 else None


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
            if rows[pid].state not in "ZX":
                found.append(pid)
    return found


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def sweep(root: int, program: int = 0, keep: frozenset[int] = frozenset()) -> bool:
    """Kill what lives below `root`; True if there was nothing to kill.

    Those of `keep` and all below them are spared; `program` in `keep` spares itself alone. Everything is stopped first, so
    that no process can start another between being seen and being killed.
    """
    hunt = _Hunt(root, program, keep)
    frozen = False
    for turn in range(_ROUNDS + 1):
        if turn == _ROUNDS and os.getpid() == 1:
            # A fork bomb outruns the search: the kernel stops the whole namespace in one go.
            frozen = True
            os.kill(-1, signal.SIGSTOP)
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
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) in self.rows:
                continue
            row = _read(name)
            if row is not None:
                self.rows[int(name)] = row
                # At once, not after the search: a fork bomb doubles in the time that a search takes.
                if row.parent in self.tree:
                    self._stop(int(name))
        for pid in descendants(self.rows, self.root):  # parents may have higher numbers than their children
            if self.rows[pid].parent in self.tree:
                self._stop(pid)
        return len(self.stopped) > before

    def _stop(self, pid: int) -> None:
        if pid in self.keep or pid in self.stopped or self.rows[pid].state in "ZX":
            return
        send(pid, signal.SIGSTOP)
        self.tree.add(pid)
        self.stopped.add(pid)
