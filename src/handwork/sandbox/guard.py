"""Protected names of one workspace while a sandbox runs on it: what is held, and what appeared and is put away."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from handwork.sandbox import beneath, protected
from handwork.sandbox.closed import Rules, is_at
from handwork.sandbox.foreign import is_foreign, may_be_foreign
from handwork.sandbox.inner import led_to, within
from handwork.sandbox.keepsakes import Keepsakes, Turns
from handwork.sandbox.made import is_repository, made_inside
from handwork.sandbox.ruled import Ruled, because
from handwork.sandbox.set_aside import SetAside
from handwork.sandbox.stamps import Stamps
from handwork.sandbox.survey import AT_START, Bounds, survey
from handwork.sandbox.texts import shown
from handwork.schema import Notify

_MOST_HELD = 64
"""Places that are mounted for them, since bwrap reads the list of all mounts for each; what goes beyond is compared instead."""
_MOST_LOOKED = 300
"""Copies that are compared after one call, in turns."""
_MOST_AT_ONCE = 40
"""Folders that are looked at after one call, in turns; all are at the end."""
_NO_RULES = Rules()


class Guard:
    """Made for each start of a sandbox, after the workspace is there. `holds`: whether the sandbox mounts `held` read-only."""

    def __init__(
        self, workspace: Path, artifacts: Path, notify: Notify, *, writable: Sequence[str] = (), holds: bool = True,
        rules: Rules = _NO_RULES, bounds: Bounds = AT_START,
    ) -> None:  # fmt: skip
        self._workspace, self._notify = workspace, notify
        self._free = tuple("/".join(map(protected.fold, PurePosixPath(each).parts)) for each in writable)
        self._root = beneath.open_folder(workspace)
        self._aside = SetAside(self._root, artifacts, notify)
        self.found = survey(workspace, bounds)
        self._known = {path: why for path, why in self.found.existing.items() if not self._is_allowed(path)}
        self.ruled = Ruled(workspace, self._root, rules, notify, bounds, holds=holds)
        self._known |= {path: because(rule) for path, rule in self.ruled.found.write.items() if path}
        self._keepsakes = Keepsakes(self._root)
        self.held: dict[str, int] = {}
        """What the sandbox is to mount read-only, each with its inode."""
        for path, why in list(self._known.items()):
            if self.ruled.covers(path):
                continue
            self._hold(path, holds)
            for target in led_to(self._workspace, self._root, path) if self._leads(path) else ():
                if not self._is_free(target) and self._known.setdefault(target, why) is why:
                    self._hold(target, holds)
        self._roots, self._folders = Turns(self.found.roots), Turns(self.found.repositories)
        self._stamps = Stamps(self._root)

    @property
    def pinned(self) -> list[str]:
        """Git folders that must stay where they are."""
        paths = self.found.repositories[: _MOST_HELD // 2]
        return [path for path in paths if path and not self._is_free(path) and not self.ruled.covers(path)]

    @property
    def sockets(self) -> list[str]:
        """Sockets that programs must not reach."""
        closed = self.ruled.masked
        return [path for path in self.found.sockets[:_MOST_HELD] if not any(is_at(path, each) for each in closed)]

    @property
    def too_large(self) -> list[str]:
        """Protected paths that can neither be held nor put back."""
        return self._keepsakes.too_large

    def open(self, path: str) -> int:
        """A descriptor of what stands at a path of the workspace ('' for itself), for mounting. Raises OSError."""
        return beneath.open_path(self._root, path) if path else os.dup(self._root)

    def why(self, path: Path) -> str:
        """Why a real absolute path may not be written, or ''."""
        if not path.is_relative_to(self._workspace):
            return ""
        parts = path.relative_to(self._workspace).parts
        inner = "/".join(parts)
        if why := self.ruled.why(inner):
            return why
        if self._is_free(inner):
            return ""
        for place in (*self._known, *self.found.named):
            if is_at(inner, place):
                return self._known.get(place) or self.found.named[place]
        for root in self.found.roots:
            rest = _below(inner, root)
            if rest and protected.fold(rest[0]) == ".git":
                if self._is_waiting(f"{root}/{rest[0]}" if root else rest[0]) and (why := protected.reason(rest)):
                    return why
            elif rest and (why := protected.reason(rest)) and not may_be_foreign(inner):
                return why
        return next((why for each in self.found.repositories if (why := protected.git_reason(_below(inner, each)))), "")

    def tidy(self, *, everything: bool = False) -> list[str]:
        """Put away what appeared and put back what was changed since the last look; sentences for the model."""
        told = []
        for path, why in sorted([*self._appeared(everything), *self.ruled.appeared(everything=everything)]):
            told += self._aside.put_away(path, why)
        self._aside.report()
        for path in self._keepsakes.changed(None if everything else _MOST_LOOKED):
            why = next((why for place, why in self._known.items() if is_at(path, place)), "it is protected")
            told += self._aside.restore(path, why, self._keepsakes)
        self._check_held()
        self.ruled.check()
        return told

    def end(self) -> list[str]:
        """The last look, when nothing runs any more: also tells the user of repositories that were made and run programs."""
        try:
            told = self.tidy(everything=True)
            for path, found in made_inside(self._workspace, self._root, self.found.repositories):
                if self._is_waiting(path):
                    for inner, why in self._waiting(path):
                        told += self._aside.put_away(inner, why)
                    continue
                self._notify(
                    "warning",
                    f"The repository {shown(path)} was made in the sandbox and has git run programs: {shown('; '.join(found))}. "
                    "Look at them before you use git there.",
                )
            self._aside.report()
            return told
        finally:
            self.close()

    def close(self) -> None:
        os.close(self._root)

    # ---- what there was

    def _hold(self, path: str, holds: bool) -> None:
        status = beneath.look(self._root, path)
        if status is None:
            return
        if not holds or len(self.held) >= _MOST_HELD or stat.S_ISLNK(status.st_mode):
            self._keepsakes.keep(path)  # no mount can stand on a link
            return
        self.held[path] = status.st_ino
        for inner, each in within(self._root, path):
            if stat.S_ISREG(each.st_mode) and each.st_nlink > 1:
                self._keepsakes.keep(inner)  # it can be changed by its other names

    def _leads(self, path: str) -> bool:
        """Whether the links in it count. What a rule closes is what it names: of a folder, not what links in there lead to."""
        status = beneath.look(self._root, path)
        link = status is not None and stat.S_ISLNK(status.st_mode)
        return link or path not in self.ruled.found.write

    def _is_allowed(self, path: str) -> bool:
        return self._is_free(path) or is_foreign(self._root, path)

    def _is_free(self, path: str) -> bool:
        parts = [protected.fold(part) for part in path.split("/")]
        whole = "/".join(parts)
        for free in self._free:
            if whole == free or whole.startswith(f"{free}/"):
                return True
            if free in protected.NAMES and free in parts:
                return True
        return False

    # ---- what appeared

    def _appeared(self, everything: bool) -> Iterator[tuple[str, str]]:
        for root in self._roots.take(None if everything else _MOST_AT_ONCE):
            if self._stamps.settled(root):
                continue
            for path, why in self._names_in(root):
                yield from self._new(path, why)
        for path, why in self.found.named.items():
            yield from self._new(path, why)
        for folder in self._folders.take(None if everything else _MOST_AT_ONCE):
            for name in beneath.present(self._root, folder, protected.GIT):
                yield from self._new(f"{folder}/{name}" if folder else name, protected.GIT[name])

    def _names_in(self, root: str) -> Iterator[tuple[str, str]]:
        for name in beneath.names(self._root, root):
            path = f"{root}/{name}" if root else name
            if protected.fold(name) == ".git":
                if self._was_repository(path):
                    yield path, protected.POINTER
                elif self._is_waiting(path):
                    self._stamps.forget(root)
                    yield from self._waiting(path)
            elif protected.fold(name) in protected.FOLDERS:
                self._stamps.forget(root)
                for inner in beneath.names(self._root, path):
                    yield f"{path}/{inner}", protected.reason([name, inner])
                    for last in beneath.names(self._root, f"{path}/{inner}"):
                        yield f"{path}/{inner}/{last}", protected.reason([name, inner, last])
            else:
                yield path, protected.reason([name])

    def _was_repository(self, path: str) -> bool:
        """Whether this `.git` took the place of a git folder: another spelling of it, a link, a file."""
        if path in self.found.repositories:
            status = beneath.look(self._root, path)
            return status is not None and not stat.S_ISDIR(status.st_mode)
        return any(protected.fold(path) == protected.fold(each) for each in self.found.repositories)

    def _is_waiting(self, path: str) -> bool:
        """Whether this is or would be a `.git` that is no repository: what lies in it waits for the user to make one there."""
        if protected.fold(path.rpartition("/")[2]) != ".git" or path in self.found.repositories:
            return False  # those of submodules and work trees need not be whole
        return not is_repository(self._root, path)

    def _waiting(self, path: str) -> Iterator[tuple[str, str]]:
        for name in beneath.present(self._root, path, protected.GIT):
            yield from self._new(f"{path}/{name}", protected.GIT[name])

    def _new(self, path: str, why: str) -> Iterator[tuple[str, str]]:
        if (
            why
            and path not in self._known
            and beneath.look(self._root, path) is not None
            and not self._is_allowed(path)
        ):
            yield path, why

    def _check_held(self) -> None:
        # Whoever replaces such a file outside takes the mount off with the old one.
        for path, inode in list(self.held.items()):
            status = beneath.look(self._root, path)
            if status is not None and status.st_ino == inode:
                continue
            del self.held[path]
            if status is None:
                self._known.pop(path, None)
            else:
                self._keepsakes.keep(path)


def _below(path: str, folder: str) -> Sequence[str]:
    """The names of a path below a folder; empty for one that does not lie there."""
    if not folder:
        return path.split("/")
    return path[len(folder) + 1 :].split("/") if path.startswith(f"{folder}/") else ()
