"""Which settings make a sandbox elsewhere, and what is refused before anything is started."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from handwork.config import DaytonaSettings, SandboxSettings
from handwork.config.sizes import bytes_of
from handwork.errors import ConfigError
from handwork.sandbox.closed import Rules
from handwork.sandbox.limits import Limits, fit_memory, limits_of
from handwork.sandbox.remote.daytona import DaytonaSandbox
from handwork.sandbox.remote.docker import BASE, DockerSandbox
from handwork.sandbox.remote.sandbox import HOME
from handwork.schema import Notify

_TAKEN = (
    "/",
    "/bin",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
    "/var/tmp",
    HOME,
)
_WITHIN = ("/dev", "/proc", "/sys", "/run")
_OPENMANUS_MEMORY, _OPENMANUS_CPUS = "512m", 1.0


def open_docker(
    settings: SandboxSettings, *, workspace: Path, artifacts: Path, notify: Notify, hide: Sequence[Path],
    environ: Mapping[str, str], rules: Rules | None = None, readable: Sequence[Path] = (),
) -> DockerSandbox:  # fmt: skip
    """A sandbox in a container. Raises ConfigError for a work_dir that cannot be one."""
    check_work_dir(settings.work_dir)
    return DockerSandbox(
        settings, workspace, artifacts, notify, limits=container_limits(settings), environ=environ, hide=hide,
        rules=rules, readable=readable,
    )  # fmt: skip


def open_daytona(
    settings: SandboxSettings, daytona: DaytonaSettings, *, workspace: Path, artifacts: Path, notify: Notify,
    hide: Sequence[Path], environ: Mapping[str, str], rules: Rules | None = None,
) -> DaytonaSandbox:  # fmt: skip
    """A sandbox at Daytona. Raises ConfigError for a work_dir that cannot be one."""
    check_work_dir(settings.work_dir)
    return DaytonaSandbox(
        settings, daytona, workspace, artifacts, notify, limits=container_limits(settings), environ=environ, hide=hide,
        rules=rules,
    )  # fmt: skip


def check_work_dir(named: str) -> None:
    """Raises ConfigError for what is no place for a workspace in a container."""
    path = PurePosixPath(named)
    why = ""
    if not path.is_absolute() or ".." in path.parts:
        why = "it has to be an absolute path"
    elif str(path) in _TAKEN or any(path.is_relative_to(place) for place in (*_WITHIN, BASE)):
        why = "that is a folder of the system in there"
    if why:
        raise ConfigError(f"[sandbox] work_dir cannot be {named}: {why}", hint="such as /workspace")


def container_limits(settings: SandboxSettings) -> Limits:
    """What [sandbox] says of a container; absent: OpenManus's own values in its table, else what is fit here."""
    theirs = settings.describes_container
    memory = settings.memory_limit or (_OPENMANUS_MEMORY if theirs else "")
    return dataclasses.replace(
        limits_of(settings),
        memory=bytes_of(memory) if memory else fit_memory(),
        cpus=settings.cpu_limit or (_OPENMANUS_CPUS if theirs else None),
    )
