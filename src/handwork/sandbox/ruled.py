"""Places of one workspace that rules close while a sandbox runs: what is masked, what appears, what somebody replaced."""

from __future__ import annotations

import stat
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from handwork.sandbox import beneath
from handwork.sandbox.closed import Rules, find_closed, is_at
from handwork.sandbox.keepsakes import Turns
from handwork.sandbox.stamps import Stamps
from handwork.sandbox.survey import Bounds
from handwork.sandbox.texts import shown
from handwork.schema import Notify

_MOST_MASKED = 64
"""Places that are mounted for them; see guard.py."""
_MOST_AT_ONCE = 200
_MOST_WATCHED = 4000
_BY_RULE = "the rule "


class Ruled:
    """Made with each Guard. `root` is a descriptor of the workspace; `holds` whether the sandbox mounts what is closed."""

    def __init__(
        self, workspace: Path, root: int, rules: Rules, notify: Notify, bounds: Bounds, *, holds: bool
    ) -> None:
        self._workspace, self._root, self._rules, self._notify = workspace, root, rules, notify
        self._stamps = Stamps(root)
        self.found = find_closed(workspace, rules, bounds, self._stamps.settled)
        self.masked: dict[str, int] = {}
        """What nothing inside may read, each with its inode."""
        self.open: list[str] = []
        """What is closed for reading and cannot be masked."""
        for path in self.found.read:
            status = beneath.look(root, path)
            if status is not None and holds and len(self.masked) < _MOST_MASKED:
                self.masked[path] = status.st_ino
            elif status is not None:
                self.open.append(path)
        self._turns = Turns(self.found.watched)
        self._watched = set(self.found.watched)
        self._said = set[str]()

    @property
    def sealed(self) -> bool:
        """Whether nothing in the workspace may be written."""
        return "" in self.found.write

    def covers(self, path: str) -> bool:
        """Whether a mount for a rule does already what one at this path, or below, would do."""
        if any(is_at(path, each) for each in self.masked):
            return True
        return self.sealed or any(path != each and is_at(path, each) for each in self.found.write)

    def why(self, inner: str) -> str:
        """Why a path of the workspace may not be written, or ''."""
        rule, _same = self._rules.by("write", f"{self._workspace}/{inner}", False)
        if rule:
            return because(rule)
        rule = next((rule for place, rule in self.found.read.items() if is_at(inner, place)), "")
        return f"{_BY_RULE}“{shown(rule)}” closes it" if rule else ""

    def appeared(self, *, everything: bool) -> Iterator[tuple[str, str]]:
        """What is new where it may not be written, each with the reason. What is new and may not be read is told and stays:
        its maker knows it, and the artifacts could be read as well."""
        queue = deque(
            place
            for place in self._turns.take(None if everything else _MOST_AT_ONCE)
            if not self._stamps.settled(place)
        )
        while queue:
            place = queue.popleft()
            for name in beneath.names(self._root, place):
                path = f"{place}/{name}" if place else name
                if path not in self.found.unseen:
                    yield from self._look_at(path, queue)

    def _look_at(self, path: str, queue: deque[str]) -> Iterator[tuple[str, str]]:
        full = f"{self._workspace}/{path}"
        (rule, same), (reading, also) = self._rules.by("write", full, True), self._rules.by("read", full, True)
        if not rule and not reading and same and also:
            return
        status = beneath.look(self._root, path) if rule or path not in self._watched else None
        if status is None:
            return
        folder = stat.S_ISDIR(status.st_mode)
        if rule and (same or not folder):
            if not any(is_at(path, each) for each in self.found.write):
                yield path, because(rule)
            return
        if reading and (also or not folder) and not any(is_at(path, each) for each in self.found.read):
            self._say(path, f"appeared, and the rule “{shown(reading)}” binds tools alone there")
        if folder and not (same and also) and path not in self._watched and len(self._watched) < _MOST_WATCHED:
            self._watched.add(path)
            self.found.watched.append(path)
            queue.append(path)

    def check(self) -> None:
        """Whoever replaces a file outside takes the mask off with the old one: the user is told."""
        for path, inode in list(self.masked.items()):
            status = beneath.look(self._root, path)
            if status is None or status.st_ino != inode:
                rule = self.found.read.get(path, "")
                del self.masked[path]
                if status is not None:
                    self._say(path, f"was replaced, and the rule “{shown(rule)}” binds tools alone there")

    def _say(self, path: str, what: str) -> None:
        if path not in self._said:
            self._said.add(path)
            until = "until the sandbox is started anew (the next session)"
            self._notify("warning", f"In the workspace, {shown(path)} {what}: programs can read it {until}.")


def because(rule: str) -> str:
    """The reason that a rule is."""
    return f"{_BY_RULE}“{shown(rule)}” forbids it"


def remedy(why: str) -> str:
    """What the user can do about a reason."""
    if why.startswith(_BY_RULE):
        return "the user can change that rule in [policy], which holds from the next session on"
    return "the user can allow it with `[sandbox] writable`"
