"""The tree of processes as /proc shows it, and how to end one so that nothing slips away."""

from __future__ import annotations

import contextlib
import os
import signal

_ROUNDS = 30
"""How often a tree is searched for processes born meanwhile before everything is frozen."""


class Row:
    """One process: its parent, its state letter and its number of threads."""

    __slots__ = ("parent", "state", "threads")

    def __init__(self, parent: int, state: str, threads: int) -> None:
        self.parent, self.state, self.threads = parent, state, threads


def table() -> dict[int, Row]:
    """All processes that /proc shows."""
    rows: dict[int, Row] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fd = os.open(f"/proc/{name}/stat", os.O_RDONLY)
        except OSError:
            continue
        try:
            data = os.read(fd, 1024)
        except OSError:
            continue
        finally:
            os.close(fd)
        # The name in parentheses may hold anything, parentheses too: count from the last one.
        fields = data[data.rfind(b")") + 2 :].split()
        if len(fields) > 17:
            rows[int(name)] = Row(int(fields[1]), chr(fields[0][0]), int(fields[17]))
    return rows


def descendants(rows: dict[int, Row], root: int) -> list[int]:
    """The living below `root`, parents before children; zombies are not alive."""
    children: dict[int, list[int]] = {}
    for pid, row in rows.items():
        children.setdefault(row.parent, []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        for pid in children.get(queue.pop(), ()):
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
    stopped: set[int] = set()
    frozen = False
    for turn in range(_ROUNDS + 1):
        if turn == _ROUNDS and os.getpid() == 1:
            # A fork bomb outruns the search: the kernel stops the whole namespace in one go.
            frozen = True
            os.kill(-1, signal.SIGSTOP)
        victims = _victims(table(), root, program, keep) - stopped
        if not victims:
            break
        for pid in victims:
            send(pid, signal.SIGSTOP)
        stopped |= victims
    for pid in stopped:
        send(pid, signal.SIGKILL)
    if frozen:
        os.kill(-1, signal.SIGCONT)
    return not stopped


def _victims(rows: dict[int, Row], root: int, program: int, keep: frozenset[int]) -> set[int]:
    victims = set(descendants(rows, root))
    for pid in keep:
        victims.discard(pid)
        if pid != program:
            victims.difference_update(descendants(rows, pid))
    return victims
