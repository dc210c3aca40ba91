"""What an edit would change, worked out from the arguments and the file as it is; nothing is written here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from handwork.errors import ToolError
from handwork.sandbox.base import Entry, Sandbox
from handwork.schema import scrub
from handwork.tool.editor_change import Change, created, inserted, replaced, taken_back
from handwork.tool.editor_history import EditHistory
from handwork.tool.editor_path import look, refuse_special
from handwork.tool.editor_text import is_binary
from handwork.tool.threads import off_loop

_MAX_EDIT = 64_000_000

Planned: TypeAlias = tuple[Entry | None, Change]
"""The file as it stands there (None: there is none), and what is to become of it."""


@dataclass(frozen=True, slots=True)
class Job:
    """One call: its arguments, and where it works. `resumed` says that the session has edits of which nothing is known here."""

    path: str
    arguments: Mapping[str, Any]
    sandbox: Sandbox
    history: EditHistory
    resumed: bool = False

    def need(self, name: str, command: str) -> Any:
        """An argument that the command cannot do without."""
        value = self.arguments.get(name)
        if value is None:
            raise ToolError(f"Parameter `{name}` is required for command: {command}")
        return value


async def _open(job: Job) -> tuple[Entry, bytes]:
    """A text file that is to be edited, and its bytes."""
    entry = await look(job.sandbox, job.path)
    refuse_special(entry, job.path)
    if entry.size > _MAX_EDIT:
        raise ToolError(
            f"{job.path} has {entry.size} bytes, too many for this editor (limit {_MAX_EDIT}): use bash (sed, python)."
        )
    data = await job.sandbox.read(job.path)
    if is_binary(data):
        raise ToolError(
            f"{job.path} is a binary file ({len(data)} bytes): it cannot be edited as text. Use bash or python_execute."
        )
    return entry, data


async def _create(job: Job) -> Planned:
    text = scrub(job.need("file_text", "create"))
    entry = await job.sandbox.stat(job.path)
    if entry is not None and entry.kind == "directory":
        raise ToolError(f"The path {job.path} is a directory, and only the `view` command can be used on directories.")
    if entry is not None:
        raise ToolError(
            f"File already exists at: {job.path}. Cannot overwrite files with command `create`. Use `str_replace` or `insert`."
        )
    if job.path.endswith("/"):
        raise ToolError(
            f"Cannot create {job.path}: it ends with a slash, so it names a directory. Give the file's name."
        )
    return None, await off_loop(partial(created, text, job.path), len(text))


async def _str_replace(job: Job) -> Planned:
    edits, old = job.arguments.get("edits"), job.arguments.get("old_str")
    if edits and (old or job.arguments.get("new_str")):
        raise ToolError("Give either `old_str` (with `new_str`) or `edits`, not both.")
    if edits is None or (edits == [] and old):  # some models fill in every parameter, with nothing
        edits = [{"old_str": job.need("old_str", "str_replace"), "new_str": job.arguments.get("new_str")}]
    if not isinstance(edits, list) or not all(
        isinstance(one, dict) and isinstance(one.get("old_str"), str) and isinstance(one.get("new_str") or "", str)
        for one in edits
    ):
        raise ToolError("`edits` must be a list of objects {old_str, new_str}.")
    if not edits:
        raise ToolError("`edits` is empty: give at least one {old_str, new_str}.")
    entry, before = await _open(job)
    size = len(before) + sum(len(one["old_str"]) + len(one.get("new_str") or "") for one in edits)
    return entry, await off_loop(partial(replaced, before, edits, job.path), size)


async def _insert(job: Job) -> Planned:
    line = job.need("insert_line", "insert")
    if not isinstance(line, int) or isinstance(line, bool):
        raise ToolError(f"Invalid `insert_line` {line!r}: it must be a whole number.")
    new = job.need("new_str", "insert")
    entry, before = await _open(job)
    return entry, await off_loop(partial(inserted, before, line, new, job.path), len(before) + len(new))


async def _undo_edit(job: Job) -> Planned:
    real = await job.sandbox.resolve(job.path)
    entry = await job.sandbox.stat(job.path)
    edit = job.history.last(real)
    if entry is not None:
        refuse_special(entry, job.path)
    if edit is None:
        lost = " Edits made before the session was resumed can no longer be taken back." if job.resumed else ""
        raise ToolError(f"No edit history found for {job.path}: there is nothing to undo.{lost}")
    now = await job.sandbox.read(job.path) if entry is not None else None
    if now is None or not await off_loop(partial(edit.fits, now), len(now)):
        what = "no longer exists" if now is None else "has changed since its last edit here"
        raise ToolError(
            f"Cannot undo: {job.path} {what} (by a command, or by hand), and undoing would destroy that later work. "
            "View it, and make the change with `str_replace`, or `create` it again."
        )
    return entry, await off_loop(partial(taken_back, now, edit, job.path), len(now))


PLANS: Mapping[str, Callable[[Job], Awaitable[Planned]]] = {
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
    "undo_edit": _undo_edit,
}
