"""Who the user is to git, read from the user's own settings without git: commits inside are theirs, and nothing else comes along."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from handwork.sandbox import git_config

FILE = ".gitconfig"
_SYSTEM = Path("/etc/gitconfig")
_LARGEST = 1 << 20
_DEEPEST = 5
_NAMES = ("name", "email")


def settings_for(workspace: Path, environ: Mapping[str, str]) -> str:
    """Settings of git that hold the user's name and address and nothing else; '' where the user has given neither.

    They are for FILE in the sandbox's own home: what the repository says itself goes before them.
    """
    found = {key: value for file in _files(environ) for key, value in _entries(file, workspace, environ)}
    known = {name: found.get(f"user.{name}", "") for name in _NAMES}
    lines = [f"\t{name} = {_quoted(value)}\n" for name, value in known.items() if value and value.isprintable()]
    return "".join(["[user]\n", *lines]) if lines else ""


def _files(environ: Mapping[str, str]) -> list[Path]:
    """The files that git reads for the user, the later ones over the earlier."""
    if given := environ.get("GIT_CONFIG_GLOBAL"):
        return [_SYSTEM, Path(given)]
    home = Path(environ.get("HOME") or "/nonexistent")
    more = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "git/config"
    return [_SYSTEM, more, home / ".gitconfig"]


def _entries(file: Path, workspace: Path, environ: Mapping[str, str], depth: int = 0) -> Iterator[tuple[str, str]]:
    for key, value in git_config.entries(_text(file)):
        yield key, value
        if depth < _DEEPEST and _is_included(key, file, workspace, environ):
            yield from _entries(_place(value, file, environ), workspace, environ, depth + 1)


def _is_included(key: str, file: Path, workspace: Path, environ: Mapping[str, str]) -> bool:
    """Whether a setting includes another file; of the conditions, those about the repository's place are looked at."""
    section, _, rest = key.partition(".")
    condition, _, last = rest.rpartition(".")
    if last != "path" and rest != "path":
        return False
    kind, sign, pattern = condition.partition(":")
    if section != "includeif" or not sign or kind not in ("gitdir", "gitdir/i"):
        return section == "include"
    pattern += "**" if pattern.endswith("/") else ""
    whole = str(_place(pattern, file, environ)) if pattern.startswith(("~/", "./", "/")) else f"**/{pattern}"
    place = str(workspace / ".git")
    return fnmatchcase(place.lower(), whole.lower()) if kind == "gitdir/i" else fnmatchcase(place, whole)


def _place(path: str, file: Path, environ: Mapping[str, str]) -> Path:
    if path.startswith("~/"):
        return Path(environ.get("HOME") or "/nonexistent") / path[2:]
    return file.parent / path


def _text(file: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                return os.read(fd, _LARGEST).decode(errors="replace")
        finally:
            os.close(fd)
    return ""


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
