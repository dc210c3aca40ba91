"""Folders that must not be shown to a sandbox as they are: the system's, and those that hold the user's keys."""

from __future__ import annotations

import contextlib
import os
import pwd
from pathlib import Path

SYSTEM = (
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/media", "/mnt", "/nix", "/opt", "/proc", "/root", "/run",
    "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var", "/var/lib", "/var/tmp", "/usr/local", "/usr/bin", "/usr/lib",
)  # fmt: skip
PRIVATE = (".ssh", ".gnupg", ".aws", ".kube")


def unfit(workspace: Path) -> str:
    """Why a folder cannot be a workspace, as it goes on behind a colon; '' if it can."""
    if str(workspace) in SYSTEM:
        return "it is a folder of the system"
    for place in ("/proc", "/sys", "/dev"):
        if workspace.is_relative_to(place):
            return f"it lies in {place}"
    if any(home.is_relative_to(workspace) for home in homes()):
        return "it is or holds your home folder, with your keys and passwords"
    for name in PRIVATE:
        if (workspace / name).exists():
            return f"it holds {name}"
    return ""


def homes() -> list[Path]:
    """The user's home folders: the one that the environment names, and the one of the account."""
    homes = [os.environ.get("HOME", "")]
    with contextlib.suppress(KeyError):  # a container's user may have no entry
        homes.append(pwd.getpwuid(os.getuid()).pw_dir)
    return [Path(os.path.realpath(home)) for home in homes if home and home != "/"]
