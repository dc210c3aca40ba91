"""The landlock backend: no namespaces, but files by an allow-list and no network; weaker than bwrap, and it says so."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from handwork.errors import SandboxError, SandboxLacks, SandboxUnavailable
from handwork.sandbox import git_identity, root, unavailable
from handwork.sandbox.base import Process
from handwork.sandbox.closed import Rules
from handwork.sandbox.connection import Connection
from handwork.sandbox.environment import base_environment
from handwork.sandbox.guard import Guard
from handwork.sandbox.guarded import GuardedSandbox
from handwork.sandbox.inside import landlock, wire
from handwork.sandbox.launch import launch
from handwork.sandbox.limits import Limits, low_disk
from handwork.schema import Notify

_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
_ACCOUNTS = ("/etc/passwd", "/etc/group")
_LACKING = (
    (2, "files cannot be moved from one folder to another"),
    (3, "files outside can be emptied"),
    (5, "devices that are open can be controlled"),
    (6, "your other programs can be sent signals, and reached by abstract sockets"),
)
"""What a kernel whose Landlock is older than the version does not hold."""


class LandlockSandbox(GuardedSandbox):
    """Confined by Landlock rules and filters of system calls. `contained` is False: sockets of other programs can be reached by
    their paths, and modes and times of the user's other files changed, so that no call may be approved for being inside."""

    name = "landlock"
    contained = False
    holds = False

    def __init__(
        self, workspace: Path, artifacts: Path, notify: Notify, *, network: bool = False, hide: Sequence[Path] = (),
        limits: Limits | None = None, writable: Sequence[str] = (),
        rules: Rules | None = None, readable: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        super().__init__(workspace, artifacts, notify, limits, writable=writable, rules=rules)
        self._network, self._hide, self._readable = network, tuple(hide), tuple(readable)
        self._scratch = ""
        notify("warning", weaker(landlock.version(), network))

    def _launch_in(self, guard: Guard) -> Connection:
        self._check()
        if said := low_disk(self._limits, self._workspace):
            self._warn("disk", said)
        self._scratch = os.path.realpath(tempfile.mkdtemp(prefix="handwork-"))
        for name in ("home", "tmp"):
            (Path(self._scratch) / name).mkdir(mode=0o700)
        own = git_identity.settings_for(self._workspace, os.environ)
        (Path(self._scratch) / "home" / git_identity.FILE).write_text(own)
        # What is granted for a folder holds for all below it: only the whole workspace can be left out.
        sealed = guard.ruled.sealed
        given = [] if sealed else [guard.open("")]
        try:
            return launch(
                [],
                {
                    "workspace": self.workspace,
                    "limits": self._limits.words(),
                    "allowed": {
                        "readable": ["/"],
                        "writable": [self.workspace, self._scratch],
                        "hidden": [os.path.realpath(path) for path in self._hide_but_artifacts()],
                    },
                    "parent": os.getpid(),
                    "scratch": self._scratch,
                    "contained": True,
                },
                environment=self._environment(),
                pass_fds=given,
                notify=self._notify,
                confine={
                    "seen": [*self._seen(), *([self.workspace] if sealed else [])],
                    "used": _DEVICES,
                    "changed": [self._scratch],
                    "given": given,
                    "network": self._network,
                },
            )
        except OSError as error:
            shutil.rmtree(self._scratch)
            raise SandboxUnavailable(f"The supervisor cannot be started: {error}") from error
        finally:
            wire.close_all(given)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bool = False,
        pty: bool = False,
        apart: bool = False,
    ) -> Process:
        if pty:  # those of the user lie in the same folder as new ones
            raise SandboxLacks("The landlock sandbox has no terminals", hint="run the command without one (pty)")
        return await super().spawn(argv, cwd=cwd, env=env, stdin=stdin, apart=apart)

    def _check(self) -> None:
        if sys.platform != "linux" or not landlock.version():
            raise unavailable.no_landlock()
        for path in map(os.path.realpath, self._hide):
            if Path(path).is_relative_to(self._workspace):
                raise SandboxUnavailable(
                    f"Handwork's own {path} lies in the workspace, where Landlock cannot hide it",
                    hint="choose another workspace, or another HANDWORK_HOME",
                )

    def _seen(self) -> list[str]:
        places = [*root.system_places(self._network), *root.python_folders(), Path(sys.executable), self._artifacts]
        return [*map(str, places), *map(os.path.realpath, self._readable), *_ACCOUNTS, "/proc"]

    def _hide_but_artifacts(self) -> list[Path]:
        return [path for path in self._hide if not self._artifacts.is_relative_to(os.path.realpath(path))]

    def _environment(self) -> Mapping[str, str]:
        # What is there and cannot be read stops git, where what is not there does not.
        own = base_environment(f"{self._scratch}/home", f"{self._scratch}/tmp")
        return {**own, **self._proxies(self._network), "GIT_CONFIG_NOSYSTEM": "1"}

    def _explain(self, errors: str) -> SandboxError:
        said = errors.strip().splitlines()
        return SandboxUnavailable(
            f"The landlock sandbox does not start here: {said[-1] if said else 'it said nothing'}",
            hint=unavailable.HOST,
        )

    def _clean(self) -> None:
        super()._clean()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)


def weaker(version: int, network: bool) -> str:
    """What this sandbox does not do that bwrap does, given the kernel's version of Landlock."""
    lacks = [
        "programs see the list of all processes, with their command lines, the names of your keys, and the network's interfaces",
        "they reach sockets by their paths (D-Bus, Docker, ssh-agent), and so what listens there",
        "they can change modes, owners and times of files of yours outside",
        "protected files in the workspace are put back after a call, not held",
        "there are no terminals and no shared memory for them",
        *(text for since, text in _LACKING if version < since),
    ]
    if network:
        lacks.append("with the network they reach every port, local ones, too")
    return (
        "WEAKER SANDBOX (landlock): files outside of the workspace cannot be read or written"
        f"{'' if network else ', and there is no network'}. But {'; '.join(lacks)}. "
        "So calls that change something are asked about, and refused where nobody can be asked."
    )
