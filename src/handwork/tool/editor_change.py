"""One change of a file, worked out from its bytes alone: what it will hold, what is shown of it, and how it is taken back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handwork.errors import ToolError
from handwork.schema import scrub
from handwork.tool.editor_history import Edit
from handwork.tool.editor_match import Edited, insert, replace
from handwork.tool.editor_show import Diff, snippets, unified
from handwork.tool.editor_text import FileText


@dataclass(frozen=True, slots=True)
class Change:
    """What a file is to hold (`after`; None: it is to go), what is shown of it, and how to take it back.

    `seen` is the SHA-256, in hex, of what it held (None: there was no file).
    """

    after: bytes | None
    seen: str | None
    snippet: str
    diff: Diff
    record: Edit


def created(text: str, path: str) -> Change:
    """A new file."""
    data = text.encode()
    return Change(data, None, "", unified(None, FileText.decode(data), path), Edit.between(None, data))


def replaced(before: bytes, edits: Sequence[Mapping[str, Any]], path: str) -> Change:
    """All the replacements, in order. Errors: ToolError, which says which of them failed, and that none was made."""
    file, spans = FileText.decode(before), list[tuple[int, int]]()
    for number, edit in enumerate(edits, 1):
        try:
            edited = replace(file, scrub(edit["old_str"]), scrub(edit.get("new_str") or ""), path)
        except ToolError as error:
            if len(edits) == 1:
                raise
            raise ToolError(f"Edit {number} of {len(edits)} failed, so none was made. {error.message}") from None
        spans = _shifted(spans, edited, len(edited.file.text) - len(file.text))
        file = edited.file
    return _changed(before, file, spans, path)


def inserted(before: bytes, line: int, new: str, path: str) -> Change:
    """New lines after a line. Errors: ToolError."""
    edited = insert(FileText.decode(before), line, scrub(new), path)
    return _changed(before, edited.file, [(edited.start, edited.end)], path)


def taken_back(now: bytes, edit: Edit, path: str) -> Change:
    """The edit undone; `now` is what it had left."""
    before, seen, old = edit.undone(now), hashlib.sha256(now).hexdigest(), FileText.decode(now)
    if before is None:
        return Change(None, seen, "", unified(old, None, path), edit)
    file = FileText.decode(before)
    start = len(FileText.decode(before[: edit.start]).text)
    end = len(FileText.decode(before[: len(before) - edit.kept]).text)
    return Change(before, seen, snippets(file, [(start, max(start, end))]), unified(old, file, path), edit)


def _changed(before: bytes, file: FileText, spans: Sequence[tuple[int, int]], path: str) -> Change:
    after, diff = file.encode(), unified(FileText.decode(before), file, path)
    seen, record = hashlib.sha256(before).hexdigest(), Edit.between(before, after)
    return Change(after, seen, snippets(file, spans), diff, record)


def _shifted(spans: list[tuple[int, int]], edited: Edited, growth: int) -> list[tuple[int, int]]:
    """Earlier spans moved to where they lie after this edit, and its own."""
    border = edited.end - growth  # where the edit's place ended before it
    moved = [
        (start + growth, end + growth) if start >= border else (start, min(end, len(edited.file.text)))
        for start, end in spans
    ]
    return [*moved, (edited.start, edited.end)]
