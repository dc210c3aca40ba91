"""The steps that /undo can take back, oldest first, and their file: they outlive the program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handwork.cli.undo.entries import Entry

Step = dict[str, tuple[Entry | None, Entry | None]]
"""What a step changed: the path, and what stood there before and after it."""


class Steps:
    """`head` says which folder they belong to; steps of another one are not read."""

    def __init__(self, file: Path, head: list[object]) -> None:
        self._file, self._head = file, head
        self._steps = self._read()

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def last(self) -> Step | None:
        return self._steps[-1] if self._steps else None

    def add(self, step: Step) -> None:
        self._steps.append(step)
        if self._file.exists():
            with self._file.open("a") as file:
                file.write(_line(step))
        else:
            self._write()

    def drop_last(self) -> None:
        self._steps.pop()
        self._write()

    def drop_first(self) -> None:
        self._steps.pop(0)
        self._write()

    def contents(self) -> Iterator[str]:
        """The hashes of the contents that are needed to take them all back."""
        for step in self._steps:
            for before, _ in step.values():
                if before is not None and before.kind == "file":
                    yield before.held

    def _write(self) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(self._head) + "\n" + "".join(map(_line, self._steps)))
        new.replace(self._file)

    def _read(self) -> list[Step]:
        steps: list[Step] = []
        try:
            head, *lines = self._file.read_text().splitlines()
            if json.loads(head) == self._head:
                steps.extend(_step(json.loads(line)) for line in lines)
                return steps
        except (OSError, ValueError, TypeError, AttributeError):
            pass  # none yet, or a crash cut the last line off
        self._file.unlink(missing_ok=True)  # the next step writes all of them anew
        return steps


def _line(step: Step) -> str:
    rows = {path: [entry and entry.row() for entry in pair] for path, pair in step.items()}
    return json.dumps(rows) + "\n"


def _step(rows: dict[str, list[Any]]) -> Step:
    return {path: (_entry(before), _entry(after)) for path, (before, after) in rows.items()}


def _entry(row: list[Any] | None) -> Entry | None:
    return None if row is None else Entry(*row)
