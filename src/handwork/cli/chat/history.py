"""What was typed before, in a file that only its owner reads, shared by all sessions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import History

_MANY = 2000
_LARGE = 2_000_000
"""Bytes at which the file is written anew with the newest entries only."""
_LONG = 20_000
"""A longer entry is a paste, and not worth its place."""
_SECRET = re.compile(
    r"\b(sk|pk|gsk|xai|ghp|gho|github_pat|glpat|xox[abp]|hf|AKIA|AIza|ya29)[-_]?[A-Za-z0-9_\-]{16,}"
    r"|-----BEGIN|\beyJ[\w-]{10,}\."
    r"|(?i:(pass(word|wd)?|secret|token|api[-_ ]?key)\w*\s*[:=]\s*\S)"
)


class HistoryFile(History):
    """One JSON string a line. Lines that begin with a blank, or look as if they held a secret, are remembered in this program
    only; a file that cannot be read or written is no reason to stop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__()

    def load_history_strings(self) -> Iterable[str]:
        """The entries, newest first."""
        try:
            data = self._path.read_bytes()
        except OSError:
            return []
        entries = [entry for line in data.splitlines() if (entry := _entry(line)) is not None][-_MANY:]
        if len(data) > _LARGE:
            self._rewrite(entries)
        return reversed(entries)

    def store_string(self, string: str) -> None:
        if string[:1].isspace() or len(string) > _LONG or _SECRET.search(string):
            return
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "ab", buffering=0) as stream:
                os.fchmod(file, 0o600)
                stream.write(_line(string))  # one write: two programs never mix their lines

    def _rewrite(self, entries: list[str]) -> None:
        new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with suppress(OSError):
            file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "wb") as stream:
                stream.writelines(_line(entry) for entry in entries[-_MANY // 2 :])
            new.replace(self._path)


def _entry(line: bytes) -> str | None:
    try:
        entry = json.loads(line)
    except ValueError:  # a line that a crash or somebody else cut
        return None
    return entry if isinstance(entry, str) else None


def _line(text: str) -> bytes:
    return json.dumps(text).encode() + b"\n"
