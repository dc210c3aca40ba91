"""The store: whether it is there, whole, writable, and on a disk that can be shared safely."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from handwork.cli.doctor.finding import Finding, Ground
from handwork.cli.doctor.rights import nearest, why_not_writable
from handwork.errors import JournalError
from handwork.store.check import check_store

_GROUP = "Store"
_REMOTE = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "9p",
    "vboxsf",
    "drvfs",
    "gfs2",
}
"""File systems over which SQLite's log is not shared safely, or not at all; FUSE ones (`fuse.sshfs`) beside them."""


def store(ground: Ground) -> Iterator[Finding]:
    """Look at the store without changing it, and without making one."""
    path = ground.settings.store_path
    yield from _file_system(path)
    if not path.exists():
        yield _not_there(path)
        return
    try:
        checked = check_store(path)
    except JournalError as error:
        yield Finding("store", _GROUP, "problem", error.what, error.hint, True)
        return
    if why := why_not_writable(path.parent):
        text = f"the folder of the store {path} cannot be written: {why.lower()}"
        yield Finding("store", _GROUP, "problem", text, "make it writable, or set HANDWORK_HOME to one that is", True)
        return
    whole = "whole" if checked.whole else "too large to be read through now"
    count = f"{checked.sessions:,} session{'' if checked.sessions == 1 else 's'}"
    text = f"{path}: {whole}, {count}, {checked.bytes / (1 << 20):,.1f} MB"
    yield Finding("store", _GROUP, "ok", text, essential=True)


def _not_there(path: Path) -> Finding:
    there = nearest(path.parent)
    if why := "it is no folder" if not there.is_dir() else why_not_writable(there):
        text = f"the store {path} cannot be made in {there}: {why.lower()}"
        fix = f"look at its owner and permissions (`ls -ld {there}`), or set HANDWORK_HOME to a folder of yours"
        return Finding("store", _GROUP, "problem", text, fix, True)
    return Finding("store", _GROUP, "ok", f"{path}: there is none yet; the first run makes it", essential=True)


def _file_system(path: Path) -> Iterator[Finding]:
    kind = file_system(nearest(path))
    if kind in _REMOTE or kind.startswith("fuse."):
        text = f"the store lies on a network or shared file system ({kind}): two machines that use it at once would damage it"
        fix = "set HANDWORK_HOME to a folder on a local disk"
        yield Finding("store.place", _GROUP, "warning", text, fix)


def file_system(path: Path, table: Path = Path("/proc/self/mountinfo")) -> str:
    """The kind of file system that a path lies on, as the kernel names it; '' if that is not known."""
    real = os.path.realpath(path)
    best, kind = "", ""
    try:
        lines = table.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        place = fields.split(" ")[4].encode("utf-8", "surrogateescape").decode("unicode_escape", "replace")
        below = place == "/" or real == place or real.startswith(place + "/")
        if below and len(place) >= len(best):  # of two at one place the later one lies on top
            best, kind = place, rest.split(" ")[0]
    return kind
