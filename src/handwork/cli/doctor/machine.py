"""Python, the clock, and the programs that Handwork can use."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path

from handwork.cli.doctor.finding import Finding, Ground
from handwork.cli.doctor.rights import is_writable

_GROUP = "Python"
_OLDEST = (3, 11)
_RELEASED = 1_764_000_000
"""A moment before this version was made (November 2025): no honest clock shows an earlier one."""
_DAY = 86_400


def python(_ground: Ground) -> Iterator[Finding]:
    """The interpreter, and whether it can keep what it compiles."""
    version = platform.python_version()
    where = "in a virtual environment" if sys.prefix != sys.base_prefix else "of the system"
    if sys.version_info[:2] < _OLDEST:
        fix = "install a newer Python, and Handwork with it: `uv tool install --python 3.12 handwork`"
        yield Finding("python.version", _GROUP, "problem", f"Python {version} is too old: 3.11 is needed", fix, True)
    else:
        kind = platform.python_implementation()
        yield Finding("python.version", _GROUP, "ok", f"{kind} {version} {where}, {sys.executable}", essential=True)
    yield _compiled()


def _compiled() -> Finding:
    """Compiled modules are worth a second at each start; they cannot always be kept."""
    package = Path(__file__).parents[2]
    if Path(cache_from_source(str(package / "__init__.py"))).exists():
        return Finding("python.compiled", _GROUP, "ok", "compiled modules are kept: starts are quick")
    if sys.dont_write_bytecode:
        fix = "unset PYTHONDONTWRITEBYTECODE"
        return Finding("python.compiled", _GROUP, "warning", "compiled modules are not kept: each start is slow", fix)
    if not is_writable(package):
        fix = f"let its owner compile them once: `{sys.executable} -m compileall -q {package}`"
        return Finding("python.compiled", _GROUP, "warning", f"{package} is read-only: each start is slow", fix)
    return Finding("python.compiled", _GROUP, "ok", "compiled modules will be kept")


def clock(_ground: Ground) -> Iterator[Finding]:
    """A clock that is wrong makes certificates invalid and mixes up sessions."""
    now, ours = time.time(), Path(__file__).stat().st_mtime
    fix = "set the clock: `sudo timedatectl set-ntp true`"
    shown = time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(now))
    if now < _RELEASED or now < ours - _DAY:
        text = f"the clock says {shown}, which is before Handwork was installed: certificates will be refused"
        yield Finding("clock", "Machine", "warning", text, fix)
    elif now > _RELEASED + 20 * 365 * _DAY:
        yield Finding("clock", "Machine", "warning", f"the clock says {shown}: certificates will have expired", fix)
    else:
        yield Finding("clock", "Machine", "ok", f"the clock says {shown}")


def system(_ground: Ground) -> Iterator[Finding]:
    """Which system this is, and what works on it."""
    name = f"{platform.system()} {platform.release()} ({platform.machine()})"
    if sys.platform == "linux":
        yield Finding("system", "Machine", "ok", name)
        return
    text = f"{name}: asking models, sessions and configuration work; tools need Linux"
    fix = "run Handwork in a Linux container or virtual machine"
    yield Finding("system", "Machine", "problem", text, fix, True)


def programs(_ground: Ground) -> Iterator[Finding]:
    """What is used if it is there."""
    for name, use in (("git", "the agent works with your repositories"), ("rg", "the agent searches faster")):
        found = shutil.which(name)
        if found:
            yield Finding(f"programs.{name}", "Machine", "ok", f"{name}: {found}")
        else:
            yield Finding(f"programs.{name}", "Machine", "note", f"{name} is not installed; with it, {use}")
    if not os.access("/bin/bash", os.X_OK) and shutil.which("bash") is None:
        fix = "install bash with the system's package manager"
        yield Finding("programs.bash", "Machine", "problem", "there is no bash: the bash tool cannot work", fix)
