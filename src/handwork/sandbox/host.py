"""No sandbox: the same supervisor as a plain child. File tools are held to the workspace, programs by nothing."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from handwork.errors import SandboxError, SandboxUnavailable
from handwork.sandbox import git_identity
from handwork.sandbox.client import SupervisedSandbox
from handwork.sandbox.connection import Connection
from handwork.sandbox.environment import base_environment
from handwork.sandbox.launch import launch
from handwork.sandbox.limits import Limits, low_disk
from handwork.sandbox.undumpable import close_this_process
from handwork.schema import Notify

_LOUD = "NO SANDBOX (host): what the model runs can read and change everything that you can, and use the network."


class HostSandbox(SupervisedSandbox):
    """Runs programs with all the rights of the user: announced loudly as soon as it is chosen."""

    name = "host"
    contained = False
    announced = True
    """Whether it is the place of what the model runs, and that is said."""

    def __init__(
        self,
        workspace: Path,
        artifacts: Path,
        notify: Notify,
        *,
        hide: Sequence[Path] = (),
        limits: Limits | None = None,
        readable: Sequence[Path] = (),
    ) -> None:
        super().__init__(workspace, artifacts, notify, limits)
        self._hide, self._readable = tuple(hide), tuple(readable)
        self._scratch = ""
        if self.announced:
            notify("warning", _LOUD)

    def _launch(self) -> Connection:
        if sys.platform != "linux":
            raise SandboxUnavailable(
                "The host backend runs on Linux only", hint="on other systems use a Linux container or machine"
            )
        if not self._starts and (said := low_disk(self._limits, self._workspace)):
            self._notify("warning", said)
        close_this_process()  # what we start is held by nothing, and /proc shows each process to its user
        self._scratch = os.path.realpath(tempfile.mkdtemp(prefix="handwork-"))
        for name in ("home", "tmp"):
            (Path(self._scratch) / name).mkdir(mode=0o700)
        own = git_identity.settings_for(self._workspace, os.environ)
        (Path(self._scratch) / "home" / git_identity.FILE).write_text(own)
        artifacts = os.path.realpath(self._artifacts)
        hidden = [path for path in map(os.path.realpath, self._hide) if not Path(artifacts).is_relative_to(path)]
        seen = [artifacts, *map(os.path.realpath, self._readable)]
        allowed = {"readable": seen, "writable": [self.workspace, self._scratch], "hidden": hidden}
        try:
            return launch(
                [],
                {
                    "workspace": self.workspace,
                    "limits": self._limits.words(),
                    "allowed": allowed,
                    "parent": os.getpid(),
                    "scratch": self._scratch,
                },
                environment=self._environment(),
                notify=self._notify,
            )
        except OSError as error:
            shutil.rmtree(self._scratch)
            raise SandboxUnavailable(f"The supervisor cannot be started: {error}") from error

    def _environment(self) -> Mapping[str, str]:
        return base_environment(f"{self._scratch}/home", f"{self._scratch}/tmp")

    def _explain(self, errors: str) -> SandboxError:
        return SandboxUnavailable(f"The supervisor does not start: {errors or 'it said nothing'}")

    def _clean(self) -> None:
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
