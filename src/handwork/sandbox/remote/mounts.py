"""What a container sees of this machine: the workspace, the artifacts, and what is kept from it; in the engine's own words."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from handwork.sandbox.closed import is_at

_EMPTY = "ro,nosuid,nodev,noexec,size=4k,mode=0555"


@dataclass
class Mounts:
    """`binds` are the engine's Mounts, `memory` its Tmpfs: options by place."""

    binds: list[dict[str, object]] = field(default_factory=list)
    memory: dict[str, str] = field(default_factory=dict)

    def bind(self, source: Path | str, place: str, read_only: bool = False) -> None:
        # Only what is there already: an engine elsewhere, or one that sees other files, refuses instead of making an empty folder.
        self.binds.append({"Type": "bind", "Source": str(source), "Target": place, "ReadOnly": read_only})


def private(uid: int, gid: int, room: int, home: str, base: str) -> Mapping[str, str]:
    """The writable folders that live in memory and end with the container; `room` bytes at most each."""
    options = f"rw,nosuid,nodev,exec,size={room}"
    return {
        "/tmp": f"{options},mode=1777",
        "/var/tmp": f"{options},mode=1777",
        "/run": f"rw,nosuid,nodev,noexec,size=16m,mode=0755,uid={uid},gid={gid}",
        home: f"{options},mode=0700,uid={uid},gid={gid}",
        base: f"rw,nosuid,nodev,exec,size=16m,mode=0755,uid={uid},gid={gid}",
    }


@dataclass(frozen=True)
class Kept:
    """Paths below the workspace: `held` are read-only, `pinned` folders stay where they are, `muted` sockets cannot be reached,
    and what is `masked` cannot be read. The workspace itself ('') may be held."""

    held: Sequence[str] = ()
    pinned: Sequence[str] = ()
    muted: Sequence[str] = ()
    masked: Sequence[str] = ()


def show_workspace(mounts: Mounts, workspace: Path, inside: str, hide: Sequence[Path], kept: Kept) -> None:
    """The workspace, writable, but for what is `kept`, and `hide` (Handwork's own, which is masked)."""
    mounts.bind(workspace, inside, read_only="" in kept.held)
    pinned = set[str]()
    for name in kept.pinned:
        _pin(mounts, f"{name}/below", workspace, inside, pinned, kept)
    for name in filter(None, kept.held):
        _pin(mounts, name, workspace, inside, pinned, kept)
        mounts.bind(workspace / name, f"{inside}/{name}", read_only=True)
    for name in kept.muted:
        _pin(mounts, name, workspace, inside, pinned, kept)
        mounts.bind("/dev/null", f"{inside}/{name}", read_only=True)
    for path in {Path(os.path.realpath(path)) for path in (*hide, *(workspace / name for name in kept.masked))}:
        if path == workspace or not path.is_relative_to(workspace):
            continue
        name = str(path.relative_to(workspace))
        if not path.exists():
            path.mkdir(mode=0o700, parents=True)
        _pin(mounts, name, workspace, inside, pinned, kept)
        if path.is_dir():
            mounts.memory[f"{inside}/{name}"] = _EMPTY
        else:
            mounts.bind("/dev/null", f"{inside}/{name}", read_only=True)


def _pin(mounts: Mounts, name: str, workspace: Path, inside: str, pinned: set[str], kept: Kept) -> None:
    # A folder above a mount could be renamed and another put in its place; one that is a mount point itself cannot.
    for parent in map(str, PurePosixPath(name).parents):
        # What lies in a read-only folder stays where it is, and a mount of its own would be writable.
        held = any(is_at(parent, each) for each in kept.held)
        if parent != "." and parent not in pinned and not held:
            pinned.add(parent)
            mounts.bind(workspace / parent, f"{inside}/{parent}")
