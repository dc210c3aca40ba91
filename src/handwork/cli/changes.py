"""What a run has changed, summed up at its end: files with the lines that came and went, and what was saved."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from handwork import events as ev
from handwork.cli.clean import one_line
from handwork.schema import JSON, Artifact

_ROWS = 8
_NOWHERE = "/dev/null"
_SPILLED = "long output"
"""The title of what was too long for the model: nobody has asked for that file."""


@dataclass(slots=True)
class _File:
    """One file over the run: lines that came and went in sum, whether it is new, whether it is gone."""

    added: int = 0
    removed: int = 0
    new: bool = False
    gone: bool = False
    private: bool = False
    """Whether it lay in a folder of the sandbox's own, which ends with it."""

    @property
    def is_as_before(self) -> bool:
        return (self.new and self.gone) or not (self.new or self.gone or self.added or self.removed)

    def shown(self, name: str) -> str:
        counts = f"+{self.added:,} −{self.removed:,}" if self.added or self.removed else ""
        what = "new" if self.new else "removed" if self.gone else ""
        end = "(in the sandbox only, gone with it)" if self.private and not self.gone else ""
        return "  ".join(filter(None, (one_line(name, 300), counts, what, end)))


@dataclass(slots=True)
class Changes:
    """A listener. It knows of edits by the diffs that tools give, so of nothing that a command has changed."""

    _workspace: str = ""
    _files: dict[str, _File] = field(default_factory=dict)
    _artifacts: dict[str, Artifact] = field(default_factory=dict)

    def __call__(self, event: ev.Event) -> None:
        match event:
            case ev.RunStarted() if event.parent_call is None:
                self._workspace = event.workspace
                self._files, self._artifacts = {}, {}
            case ev.ToolCallFinished():
                self._artifacts |= {one.path: one for one in event.artifacts if one.title != _SPILLED}
                if event.details and not event.is_error:
                    self._take(event.details)

    def _take(self, details: Mapping[str, JSON]) -> None:
        diff, path = details.get("diff"), details.get("path")
        if not (isinstance(diff, str) and isinstance(path, str) and diff.startswith("--- ")):
            return
        file = self._files.setdefault(self._named(path), _File())
        file.private = bool(details.get("private"))
        heads = diff.split("\n", 2)
        added, removed = _count(details.get("added"), diff, "+"), _count(details.get("removed"), diff, "-")
        if details.get("undoes") and file.added >= removed and file.removed >= added:
            added, removed = -removed, -added  # an edit of this run was taken back: nothing is left of it
        file.added, file.removed = file.added + added, file.removed + removed
        if heads[0].endswith(_NOWHERE):
            file.new, file.gone = file.new or not file.gone, False
        elif heads[1].endswith(_NOWHERE):
            file.gone = True

    def _named(self, path: str) -> str:
        """A file by one name, however it was called: within the workspace relative to it."""
        whole = PurePosixPath(posixpath.normpath(f"{self._workspace}/{path}" if not path.startswith("/") else path))
        return str(whole.relative_to(self._workspace) if whole.is_relative_to(self._workspace or "/") else whole)

    def rows(self) -> list[str]:
        """What to say at the run's end; nothing if nothing was changed."""
        files = {name: file for name, file in self._files.items() if not file.is_as_before}
        rows = [file.shown(name) for name, file in files.items()]
        added, removed = (sum(getattr(file, name) for file in files.values()) for name in ("added", "removed"))
        told = [f"Edited {_number(len(files), 'file')}, +{added:,} −{removed:,} lines:", *_cut(rows, "file")]
        told = told if len(rows) > 1 else [f"Edited {row}" for row in rows]
        saved = [_of_artifact(artifact) for artifact in self._artifacts.values()]
        return told + (["Saved:", *_cut(saved, "artifact")] if saved else [])


def _count(told: JSON, diff: str, sign: str) -> int:
    if isinstance(told, int):
        return told
    return sum(line.startswith(sign) for line in diff.split("\n")[2:])


def _of_artifact(artifact: Artifact) -> str:
    title = f"{one_line(artifact.title, 60)}: " if artifact.title else ""
    return f"{title}{one_line(artifact.path, 300)}"


def _cut(rows: list[str], what: str) -> list[str]:
    left = len(rows) - _ROWS
    return [f"  {row}" for row in (rows if left <= 0 else [*rows[:_ROWS], f"and {_number(left, f'more {what}')}"])]


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
