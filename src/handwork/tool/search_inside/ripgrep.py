"""Ripgrep as a sieve: of these files, which can hold the query at all; the lines are then read by us, so the answer is the same."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .query import Query

_ARGUMENTS = 100_000
"""Bytes of names that one ripgrep is given."""
_ANY_OTHER = r"(?-u:[\x80-\xff])"
"""A byte that is no ASCII: what stands in such a file we read ourselves."""


def find(workspace: str) -> str | None:
    """The program, if one is installed; never one that lies in the workspace, which is not ours to run."""
    for place in os.environ.get("PATH", "").split(os.pathsep):
        program = f"{place}/rg"
        if place.startswith("/") and os.access(program, os.X_OK):
            real = os.path.realpath(program)
            return None if _below(real, workspace) or _below(program, workspace) else program
    return None


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Sieve:
    """Says which files to read; without ripgrep, or where it fails, all of them."""

    def __init__(self, program: str | None, query: Query, root: str) -> None:
        pattern = query.ripgrep if program else None
        self._root, self._command = root, list[str]()
        if program and pattern is not None:
            case = "--ignore-case" if query.ignores_case else "--case-sensitive"
            self._command = [program, "--no-config", "--no-ignore", "--hidden", "--text", "--no-messages", case]
            self._command += ["--files-with-matches", "--null", "--color=never", "-e", pattern, "-e", _ANY_OTHER, "--"]

    @property
    def used(self) -> bool:
        return bool(self._command)

    def batches(self, files: Sequence[str]) -> list[list[str]]:
        """The files in as many at once as a command takes."""
        if not self._command:
            return [list(files)]
        out: list[list[str]] = [[]]
        size = 0
        for file in files:
            size += len(os.fsencode(file)) + 9
            if size > _ARGUMENTS:
                out.append([])
                size = 0
            out[-1].append(file)
        return out

    def keep(self, files: list[str]) -> list[str]:
        """Those of the files that may hold the query, in order."""
        kept = self._kept(files) if self._command and files else None
        return files if kept is None else [file for file in files if os.fsencode(file) in kept]

    def _kept(self, files: list[str]) -> set[bytes] | None:
        import subprocess  # costs as much time as a small search

        names = [file if file[:1] != "-" else f"./{file}" for file in files]
        try:
            done = subprocess.run(
                [*self._command, *names],
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return None
        if done.returncode not in (0, 1):
            return None
        return {name[2:] if name.startswith(b"./") else name for name in done.stdout.split(b"\0")}
