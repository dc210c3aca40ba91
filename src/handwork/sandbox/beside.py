"""A place beside the sandbox, for programs that the user himself wants to run with his own rights."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from handwork.sandbox.host import HostSandbox
from handwork.sandbox.limits import Limits
from handwork.schema import Notify

_PASSED = ("HOME", "PATH", "LANG", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR")


class Beside(HostSandbox):
    """Started by our supervisor, so that each program ends with all that it started; nothing else holds it. Its environment is
    an allow-list: no key of ours, and no other secret, is in it. Not announced: whoever starts a program says so."""

    name = "beside"
    announced = False

    def __init__(
        self,
        workspace: Path,
        artifacts: Path,
        notify: Notify,
        *,
        hide: Sequence[Path] = (),
        limits: Limits | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(workspace, artifacts, notify, hide=hide, limits=limits)
        self._passed = passed_on(os.environ if environ is None else environ)

    def _environment(self) -> Mapping[str, str]:
        return self._passed


def passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """What a program beside the sandbox is given of an environment."""
    kept = {name: value for name, value in environ.items() if name in _PASSED or name.startswith("LC_")}
    return {"PATH": os.defpath, **{name: value for name, value in kept.items() if not value.startswith("()")}}
