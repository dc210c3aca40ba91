"""What the repository's files may hold: no registry's host, no path of somebody's machine, docs that tell the truth."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

HOST_ALLOWED_IN = {"src/handwork/llm/local/catalog.py"}
"""The default package index, where a model is fetched from when nothing else is configured."""

# Written so that no pattern matches its own text.
_HOSTS = re.compile(
    rb"(?:py[p]i|pythonhosted|py[p]a|npm[j]s|rubyge[m]s|crat[e]s|(?:deb|ftp)\.deb[i]an|huggingf[a]ce|ghcr|docker)\.(?:org|com|io|co)\b"
)
_MACHINE = re.compile(
    rb"(?<![\w.~])(?:/(?:home|Users)/(?!agent\b|user\b|handwork\b)[a-z]\w*/|/ro[o]t/\w|/wor[k]/\w|[A-Z]:\\Users\\)"
)
_PARTS_SKIPPED = {
    ".git",
    ".venv",
    "build",
    "dist",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
}


def tracked_files(root: Path) -> list[Path]:
    """The files that are in the repository or about to be; without git, all but what make and the tools leave."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        found = (path for path in root.rglob("*") if not _PARTS_SKIPPED & set(path.relative_to(root).parts))
    else:
        found = (root / name.decode() for name in listed.split(b"\0") if name)
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


def registry_hosts(root: Path, files: list[Path]) -> Iterator[str]:
    for path in files:
        if (name := path.relative_to(root).as_posix()) not in HOST_ALLOWED_IN:
            yield from (
                f"{name}: names the host {match.group().decode()}" for match in _HOSTS.finditer(path.read_bytes())
            )


def machine_paths(root: Path, files: list[Path]) -> Iterator[str]:
    here = str(root).encode() + b"/"
    for path in files:
        content, name = path.read_bytes(), path.relative_to(root).as_posix()
        yield from (
            f"{name}: has the path {match.group().decode()}… of a machine" for match in _MACHINE.finditer(content)
        )
        if here in content:
            yield f"{name}: has the path of this checkout"


def make_targets_named_but_missing(root: Path, documents: list[Path]) -> Iterator[str]:
    targets = set(re.findall(r"^([a-z][\w-]*):", (root / "Makefile").read_text(), re.MULTILINE))
    for path in documents:
        for target in re.findall(r"(?:^|[`$] ?)make ([a-z][\w-]*)", path.read_text(), re.MULTILINE):
            if target not in targets:
                yield f"{path.name}: there is no `make {target}`"


def paths_named_but_missing(root: Path, documents: list[Path]) -> Iterator[str]:
    """Paths of the repository in backticks or as link targets."""
    pattern = re.compile(r"`((?:src|tests|docs|bench|examples|requirements|\.ci)/[\w./-]*)`|\]\((?!\w+:|#)([^)\s#]+)")
    for path in documents:
        for quoted, linked in pattern.findall(path.read_text()):
            target = root / quoted if quoted else path.parent / linked
            if not target.exists():
                yield f"{path.name}: {quoted or linked} does not exist"
