"""/undo: takes back what the last step changed in the workspace, whoever changed it, from a copy that lies outside of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from handwork.cli.undo.watch import TooLarge, Undone, Watch

__all__ = ["Undo", "Undone"]


class Undo:
    """Call before_step and after_step around each step, undo between two; all of them block, and may be called in a thread.

    Not covered, and said by `notify(level, text)` once a path when a step changes it: folders of the names in IGNORED (said for
    a repository's state), files over 16 MB or unreadable, other file systems. Too large a workspace, a full disk or a system
    that lacks what this needs switch undo off, with a notice; nothing is ever raised. `folder` is this conversation's own, and
    `private` folders are never looked into. What the steps need stays in it after `close`, so that `/undo` still works when
    the conversation is taken up again; folders beside it that were not used for a week are removed.
    """

    def __init__(
        self, workspace: Path, folder: Path, notify: Callable[[str, str], None], private: Sequence[Path] = ()
    ) -> None:
        self._watch = Watch(workspace, folder, self._tell, private)
        self._notify = notify
        self._lock = threading.Lock()
        able = os.scandir in os.supports_fd and os.open in os.supports_dir_fd
        self._off = "" if able else "this system cannot open files by their folder"
        self._told: set[str] = set()

    def before_step(self) -> None:
        """Note what is there; the first time everything is copied."""
        self._guard(self._watch.before_step)

    def after_step(self) -> None:
        """Note what the step has changed."""
        self._guard(self._watch.after_step)

    def undo(self) -> Undone:
        """Take the last step back that changed something; called again, the one before it."""
        with self._lock:
            if self._off:
                return Undone(why=f"undo is off: {self._off}")
            try:
                return self._watch.undo()
            except (OSError, TooLarge) as error:
                return Undone(why=f"it broke off and can be repeated: {_why(error)}")

    def close(self) -> None:
        """End. A copy that is being made stops."""
        self._watch.stop()
        with self._lock:
            self._off = self._off or "it is closed"
            self._watch.close()

    def _guard(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._off:
                return
            try:
                work()
            except (OSError, TooLarge) as error:
                self._off = _why(error)
                self._watch.give_up()
                self._notify("warning", f"/undo is off for this workspace: {self._off}")

    def _tell(self, path: str, why: str) -> None:
        if path not in self._told:
            self._told.add(path)
            self._notify("info", f"not covered by /undo: {path} ({why})")


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
