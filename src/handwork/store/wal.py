"""Moves the write-ahead log into the file from a thread: SQLite's automatic way would stall the loop for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Thread

_DUE = 8 << 20
"""Bytes written since the last checkpoint that make the next one due."""
_TOO_LONG = 8 * _DUE
"""A log beyond this is cut, which keeps writers out for some milliseconds; under steady writing it would never end else."""


class Checkpointer:
    """`wrote` is called after each commit and starts the thread when it is time. `report` is told of failures, on the loop."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        self._path, self._report = path, report
        self._written = 0
        self._thread: Thread | None = None
        self._failure = ""

    def wrote(self, size: int) -> None:
        """About `size` bytes went into the log."""
        self._written += size
        if self._written < _DUE or (self._thread is not None and self._thread.is_alive()):
            return
        if self._failure:
            self._report(
                f"The store's log could not be folded into {self._path} ({self._failure}); it grows until that works"
            )
            self._failure = ""
        self._written = 0
        self._thread = Thread(target=self._run, name="handwork-checkpoint", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for a checkpoint that is under way."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            connection = sqlite3.connect(self._path, timeout=0.1, isolation_level=None)
            try:
                (size,) = connection.execute("PRAGMA page_size").fetchone()
                _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                if pages * size > _TOO_LONG:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()
        except sqlite3.Error as error:
            self._failure = str(error)
