"""The shell's own table of background jobs, read from what its `jobs -l` prints."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"\[(\d+)\][+-]?\s+(\d+)\s+([A-Z][^\n]*?)\s{2,}(.*)")
_MORE = re.compile(r"\s+(\d+)\s+(?:[A-Z]\w+\s.*?)?(\|.*)")
_ALIVE = re.compile(r"Running|Stopped")
_EXIT = re.compile(r"(?:Exit |Done\()(\d+)")

_FOLDER = re.compile(r"\s*\(wd: [^\n]*\)\s*\Z")
"""What bash adds where the job began in another folder than the shell's."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A job of the shell: its number there (%1), its processes, the state in bash's words, and the command."""

    number: int
    pids: tuple[int, ...]
    state: str
    command: str

    @property
    def alive(self) -> bool:
        return bool(_ALIVE.match(self.state))

    @property
    def exit_code(self) -> int | None:
        """Its exit code, if it ended by itself."""
        if self.state == "Done":
            return 0
        match = _EXIT.match(self.state)
        return int(match[1]) if match else None


def read_table(text: str) -> list[Entry]:
    """The entries; a pipeline and a compound command take several lines."""
    entries: list[Entry] = []
    for line in text.splitlines():
        if match := _ENTRY.match(line):
            entries.append(Entry(int(match[1]), (int(match[2]),), match[3], _command(match[4])))
        elif entries:
            last = entries[-1]
            piped = _MORE.match(line)
            pids = (*last.pids, int(piped[1])) if piped else last.pids
            more = piped[2] if piped else line
            entries[-1] = Entry(last.number, pids, last.state, f"{last.command} {_command(more)}")
    return entries


def _command(text: str) -> str:
    return _FOLDER.sub("", text).strip().removesuffix("&").strip()
