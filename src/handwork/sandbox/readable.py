"""Files and folders outside of the workspace that a sandbox shows read-only: which of those that were asked for may be."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from handwork.sandbox.plan import follow
from handwork.sandbox.unfit import PRIVATE, SYSTEM, homes
from handwork.schema import Notify

_HARMLESS = {"/opt", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/nix", "/bin", "/sbin", "/lib", "/lib32", "/lib64"}
"""Folders of the system that hold programs, and nothing of anybody's own."""
_CLOSED = ("/proc", "/sys", "/dev", "/run", "/var/run")
_MOST = 20_000
"""Entries that are looked through for sockets."""


def shown(
    paths: Sequence[Path], *, workspace: Path, hide: Sequence[Path], notify: Notify, installed: Path | None = None
) -> list[Path]:
    """Those that may be shown, by their names, where the sandbox puts emptiness over `hide`; a notice for each that is left out,
    and for each that holds keys. `installed`: what lies in that folder of ours are programs, which may be shown one by one."""
    kept = []
    for path in dict.fromkeys(paths):
        real = Path(os.path.realpath(path))
        if real.exists() and real.is_relative_to(workspace):
            continue  # it is there already
        if why := _why_not(path, real, workspace, [] if _is_program(real, installed) else hide):
            notify("warning", f"{path} is not shown to the sandbox: {why}")
            continue
        if any(part in PRIVATE for part in real.parts):
            notify("warning", f"{path} is shown to all that runs in the sandbox, with the keys that it holds")
        kept.append(path)
    return kept


def without_own(paths: Sequence[Path], *, hide: Sequence[Path], notify: Notify) -> list[Path]:
    """Of those that may be shown, those that do not hold what is ours: for a sandbox that cannot mask a part of a folder."""
    kept = []
    for path in paths:
        real = Path(os.path.realpath(path))
        own = next((own for own in map(os.path.realpath, hide) if Path(own).is_relative_to(real)), None)
        if own is None:
            kept.append(path)
        else:
            notify(
                "warning",
                f"{path} is not shown to the sandbox: Handwork's own {own} lies in it, which cannot be hidden there",
            )
    return kept


def _is_program(real: Path, installed: Path | None) -> bool:
    folder = os.path.realpath(installed) if installed else ""
    return bool(folder) and str(real) != folder and real.is_relative_to(folder)


def _why_not(path: Path, real: Path, workspace: Path, hide: Sequence[Path]) -> str:
    if not path.is_absolute():
        return "it has to be an absolute path"
    try:
        mode = real.stat().st_mode
    except OSError as error:
        return "there is no such file or folder" if isinstance(error, FileNotFoundError) else str(error.strerror)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return "it is neither a file nor a folder"
    if any(Path(link).is_relative_to(workspace) for link in follow(path)[0]):
        return "a link in the workspace, which programs there can change, leads to it"
    for place in _CLOSED:
        if real.is_relative_to(place):
            return f"it lies in {place}"
    if str(real) in SYSTEM and str(real) not in _HARMLESS:
        return "it is a folder of the system"
    if any(home.is_relative_to(real) for home in homes()):
        return "it is or holds your home folder, with your keys and passwords"
    if held := next((name for name in PRIVATE if (real / name).exists()), ""):
        return f"it holds {held}"
    if any(real.is_relative_to(os.path.realpath(own)) for own in hide):
        return "it is Handwork's own"
    return _with_socket(real)


def _with_socket(real: Path) -> str:
    """To read a socket's name is enough to speak to the program behind it, whatever the mount says."""
    queue, left = deque([str(real)]), _MOST
    while queue and left > 0:
        try:
            entries = list(os.scandir(queue.popleft()))
        except OSError:
            continue  # a file, or nobody's to be looked at: then it is not shown either
        left -= len(entries)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                queue.append(entry.path)
            elif not entry.is_symlink() and not entry.is_file() and stat.S_ISSOCK(entry.stat().st_mode):
                return f"there is a socket of another program in it ({entry.path})"
    return ""
