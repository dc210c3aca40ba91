"""Where Handwork keeps its files and where it works: rights, space, and what lies in what."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from handwork.cli.doctor.finding import Finding, Ground
from handwork.cli.doctor.rights import nearest, why_not_writable
from handwork.config import Home
from handwork.config.approvals import Approvals
from handwork.config.trust import TrustRecord
from handwork.errors import ConfigError
from handwork.sandbox.open import open_sandbox

_FOLDERS = "Folders"
_LOW = 1 << 30
_NOTHING = 50 << 20
_FEW_FILES = 1000
_PRIVATE = ("keys.json", "config.toml", "handwork.toml", "setup.toml", "mcp.json")
"""Files of the configuration folder that may hold keys."""


def home(ground: Ground) -> Iterator[Finding]:
    """Handwork's own folders can be written, and only by their owner."""
    own, environ = ground.settings.home, ground.settings.environ
    if not environ.get("HOME") and not environ.get("HANDWORK_HOME"):
        text = "HOME is not set: the home folder of the user's account is taken"
        yield Finding("home.variable", _FOLDERS, "warning", text, "set HOME, or HANDWORK_HOME to a folder of yours")
    for name, folder in _own(own).items():
        yield _writable(f"home.{name}", f"{name} in {folder}", folder, essential=name == "data")
    for file in filter(Path.is_file, (own.config / each for each in _PRIVATE)):
        if (mode := stat.S_IMODE(file.stat().st_mode)) & 0o077:
            text = f"{file} may hold keys, and others of this machine can read it (mode {mode:o})"
            yield Finding(f"home.{file.name}", _FOLDERS, "warning", text, f"chmod 600 {file}")


def answers(ground: Ground) -> Iterator[Finding]:
    """What people answered for good can be read: no run starts otherwise."""
    folder = ground.settings.home.config
    read: Mapping[str, Callable[[], object]] = {
        "approvals": lambda: Approvals(folder).workspaces(),
        "trusted": lambda: TrustRecord(folder).decisions(),
    }
    for name, look in read.items():
        try:
            look()
        except ConfigError as error:
            text = f"{error.what}: no run starts"
            yield Finding(f"home.{name}", _FOLDERS, "problem", text, error.hint, essential=True)


def _own(own: Home) -> Mapping[str, Path]:
    """Handwork's folders by what they are for; those that are one are named once."""
    folders = {"data": own.data, "configuration": own.config, "cache": own.cache}
    return {name: path for name, path in folders.items() if path not in [*folders.values()][: [*folders].index(name)]}


def _writable(id: str, what: str, folder: Path, *, essential: bool) -> Finding:
    there = nearest(folder)
    fix = f"look at its owner and permissions (`ls -ld {there}`), or set HANDWORK_HOME to a folder of yours"
    if not there.is_dir():
        return Finding(id, _FOLDERS, "problem", f"{what} cannot be: {there} is no folder", fix, essential)
    if why := why_not_writable(there):
        text = f"{what} cannot be written: {why.lower()}"
        if "space" in why or "quota" in why:
            fix = f"free some space there, or set HANDWORK_HOME to a folder on another disk (`df -h {there}`)"
        return Finding(id, _FOLDERS, "problem" if essential else "warning", text, fix, essential)
    later = "" if there == folder else " (made when it is needed)"
    return Finding(id, _FOLDERS, "ok", f"{what}{later}", essential=essential)


def workspace(ground: Ground) -> Iterator[Finding]:
    """The folder that tools would work in."""
    folder, settings = ground.workspace, ground.settings
    if not folder.is_dir():
        yield Finding("workspace", _FOLDERS, "ok", f"workspace {folder} (made when it is needed)")
        return
    with tempfile.TemporaryDirectory(prefix="handwork-doctor-") as artifacts:
        try:
            open_sandbox(
                settings.sandbox,
                workspace=folder,
                artifacts=Path(artifacts),
                notify=lambda level, text: None,
                hide=[settings.home.data, settings.home.config],
            )
        except ConfigError as error:
            yield Finding("workspace", _FOLDERS, "warning", error.what, error.hint)
            return
    if why := why_not_writable(folder):
        text = f"the workspace {folder} cannot be written ({why.lower()}): the agent can only read there"
        fix = "work in another folder, or name one with --workspace"
        yield Finding("workspace", _FOLDERS, "warning", text, fix)
    else:
        yield Finding("workspace", _FOLDERS, "ok", f"workspace {folder}")


def disk(ground: Ground) -> Iterator[Finding]:
    """Space where Handwork writes, each file system once."""
    own, seen = ground.settings.home, dict[int, str]()
    places = {
        "data": own.data,
        "cache": own.cache,
        "workspace": ground.workspace,
        "temporary": Path(tempfile.gettempdir()),
    }
    for name, place in places.items():
        there = nearest(place)
        device = there.stat().st_dev
        if device in seen:
            continue
        seen[device] = name
        yield _space(name, there)


def _space(name: str, there: Path) -> Finding:
    free, state = shutil.disk_usage(there).free, os.statvfs(there)
    id, where = f"disk.{name}", f"{_size(free)} free for {name} ({there})"
    fix = f"free some space: `du -xh {there} | sort -h | tail` shows what is large"
    if free < _NOTHING:
        return Finding(id, "Disk", "problem", f"the disk is full: {where}", fix, essential=True)
    if state.f_files and state.f_favail < _FEW_FILES:
        text = f"the file system of {there} takes hardly any more files (no inodes left)"
        return Finding(id, "Disk", "problem", text, "delete small files that nobody needs", essential=True)
    if free < _LOW:
        return Finding(id, "Disk", "warning", f"little space: {where}", fix, essential=True)
    return Finding(id, "Disk", "ok", where, essential=True)


def _size(count: int) -> str:
    return f"{count / (1 << 30):,.1f} GB" if count >= 1 << 30 else f"{count / (1 << 20):,.0f} MB"
