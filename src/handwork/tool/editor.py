"""str_replace_editor: look at files and folders, create, edit byte for byte, and take edits back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from handwork.errors import ToolError
from handwork.sandbox.base import Entry, Sandbox
from handwork.schema import JSON, Action, ToolResult, scrub
from handwork.tool.base import Tool, ToolContext
from handwork.tool.call_facts import has_results_of
from handwork.tool.editor_change import Change, created, inserted, replaced, taken_back
from handwork.tool.editor_history import EditHistory
from handwork.tool.editor_path import check_path, in_words, led, look, refuse_special
from handwork.tool.editor_text import is_binary
from handwork.tool.editor_view import view_directory, view_file
from handwork.tool.threads import off_loop

R = TypeVar("R")
_MAX_EDIT = 64_000_000
_REVIEW = "Review the changes and make sure they are as expected (right place, indentation, no duplicates). Edit again if needed."


@dataclass(frozen=True, slots=True)
class _Job:
    """One call: its arguments, and where it works."""

    path: str
    arguments: Mapping[str, Any]
    sandbox: Sandbox
    history: EditHistory
    resumed: bool

    def need(self, name: str, command: str) -> Any:
        """An argument that the command cannot do without."""
        value = self.arguments.get(name)
        if value is None:
            raise ToolError(f"Parameter `{name}` is required for command: {command}")
        return value


class StrReplaceEditor(Tool):
    """View, create and edit files of the workspace (CONTRACT D3); tabs, line endings, encoding and mode survive.

    A file is replaced in one step, and only while it still holds what the edit was made from. Of a file with several names
    (hard links) only the one that was named changes, and the result says so.
    """

    name = "str_replace_editor"
    description = (
        "View, create and edit files. Paths are absolute or relative to the workspace.\n"
        "* view: a file with line numbers (view_range=[first, last], last -1 is the end), or a folder two levels deep\n"
        "* create: a new file with file_text; refuses an existing one; missing folders are made\n"
        "* str_replace: replace old_str, which must occur exactly once (give enough neighbouring lines, exact white space, "
        "no line numbers), by new_str; or several at once, all or nothing, with edits=[{old_str, new_str}, ...]\n"
        "* insert: put new_str after line insert_line (0: at the start)\n"
        "* undo_edit: take back the last edit of the file; can be repeated"
    )
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "enum": ["view", "create", "str_replace", "insert", "undo_edit"],
                "description": "What to do.",
            },
            "path": {"type": "string", "description": "The file or folder: absolute, or relative to the workspace."},
            "file_text": {"type": "string", "description": "create: the content of the new file."},
            "old_str": {"type": "string", "description": "str_replace: the exact text to replace."},
            "new_str": {
                "type": "string",
                "description": "str_replace: the new text (absent: old_str is deleted); insert: the text to put in.",
            },
            "insert_line": {
                "type": "integer",
                "description": "insert: the line after which new_str is put; 0 is the start.",
            },
            "view_range": {
                "type": "array",
                "items": {"type": "integer"},
                "minItems": 2,
                "maxItems": 2,
                "description": "view: first and last line to show, from 1; -1 as last is the end of the file.",
            },
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"old_str": {"type": "string"}, "new_str": {"type": "string"}},
                    "required": ["old_str"],
                },
                "description": "str_replace: several replacements in order, in place of old_str and new_str.",
            },
        },
        "required": ["command", "path"],
    }
    sandboxed = True

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        resource = str(arguments.get("path") or "*")
        if arguments.get("command") == "view":
            return [Action(kind="read", resource=resource, repeatable=True)]
        return [Action(kind="write", resource=resource)]

    async def execute(self, *, context: ToolContext, command: str, path: str, **arguments: Any) -> ToolResult:
        """Do one command. Errors: ToolError, each with its own text; nothing is changed then."""
        work = _COMMANDS.get(command)
        if work is None:
            allowed = ", ".join(_COMMANDS)
            raise ToolError(f"Unrecognized command `{command}`. The allowed commands are: {allowed}")
        check_path(path)
        history = context.resource("editor", EditHistory)
        resumed = has_results_of(self.name, context.history)
        job = _Job(path, arguments, context.sandbox, history, resumed)
        try:
            note = await led(job.sandbox, path, command)
            if command == "view":
                return await work(job)
            async with history.lock:
                return _noted(await work(job), note)
        except OSError as error:
            raise ToolError(in_words(error, path, command)) from error


def _noted(result: ToolResult, note: str | None) -> ToolResult:
    return replace(result, system=" ".join(filter(None, (result.system, note)))) if note else result


async def _view(job: _Job) -> ToolResult:
    entry = await look(job.sandbox, job.path)
    view_range = job.arguments.get("view_range")
    if entry.kind == "directory":
        if view_range is not None:
            raise ToolError("The `view_range` parameter is not allowed when `path` points to a directory.")
        return await view_directory(job.sandbox, job.path)
    refuse_special(entry, job.path)
    return await view_file(job.sandbox, job.path, entry.size, view_range)


async def _open(job: _Job) -> tuple[Entry, bytes]:
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


async def _create(job: _Job) -> ToolResult:
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
    change = await off_loop(partial(created, text, job.path), len(text))
    await _written(_store(job, change))
    return ToolResult(output=f"File created successfully at: {job.path}", details=_details(job, change))


async def _str_replace(job: _Job) -> ToolResult:
    edits = job.arguments.get("edits")
    if edits is not None and job.arguments.get("old_str") is not None:
        raise ToolError("Give either `old_str` (with `new_str`) or `edits`, not both.")
    if edits is None:
        edits = [{"old_str": job.need("old_str", "str_replace"), "new_str": job.arguments.get("new_str")}]
    if not isinstance(edits, list) or not all(
        isinstance(one, dict) and isinstance(one.get("old_str"), str) for one in edits
    ):
        raise ToolError("`edits` must be a list of objects {old_str, new_str}.")
    if not edits:
        raise ToolError("`edits` is empty: give at least one {old_str, new_str}.")
    entry, before = await _open(job)
    size = len(before) + sum(len(one["old_str"]) + len(one.get("new_str") or "") for one in edits)
    change = await off_loop(partial(replaced, before, edits, job.path), size)
    return await _save(job, entry, change)


async def _insert(job: _Job) -> ToolResult:
    line = job.need("insert_line", "insert")
    if not isinstance(line, int):
        raise ToolError(f"Invalid `insert_line` {line!r}: it must be a whole number.")
    new = job.need("new_str", "insert")
    entry, before = await _open(job)
    change = await off_loop(partial(inserted, before, line, new, job.path), len(before) + len(new))
    return await _save(job, entry, change)


async def _save(job: _Job, entry: Entry, change: Change) -> ToolResult:
    await _written(_store(job, change))
    output = (
        f"The file {job.path} has been edited. Here's the result of running `cat -n` on a snippet of {job.path}:\n"
        f"{change.snippet}\n{_REVIEW}"
    )
    return ToolResult(output=output, system=_of_links(entry), details=_details(job, change))


def _details(job: _Job, change: Change) -> dict[str, JSON]:
    return {"path": job.path, "diff": change.diff}


def _of_links(entry: Entry) -> str | None:
    """The rename that makes a write atomic parts a file from its other names, which a human may have meant to keep together."""
    if entry.links < 2:
        return None
    return (
        f"The file had {entry.links} names (hard links). Only this one was changed; the others keep the content before."
    )


async def _store(job: _Job, change: Change) -> None:
    """Write the change, unless somebody else has changed the file meanwhile, and note how it is taken back."""
    await job.sandbox.write(job.path, change.after or b"", exclusive=change.seen is None, expected=change.seen)
    job.history.add(await job.sandbox.resolve(job.path), change.record)


async def _undo(job: _Job) -> ToolResult:
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
    change = await off_loop(partial(taken_back, now, edit, job.path), len(now))
    await _written(_take_back(job, real, change))
    if change.after is None:
        output = f"Creating {job.path} has been undone: the file is removed."
    else:
        output = f"The last edit of {job.path} has been undone. Here's that place now:\n{change.snippet}"
    return ToolResult(output=output, system=_of_links(entry) if entry else None, details=_details(job, change))


async def _take_back(job: _Job, real: str, change: Change) -> None:
    if change.after is None:
        await job.sandbox.remove(job.path, expected=change.seen)
    else:
        await job.sandbox.write(job.path, change.after, expected=change.seen)
    job.history.pop(real)


async def _written(work: Coroutine[Any, Any, R]) -> R:
    """Finish a write and its record together, also when the call is cancelled meanwhile: half of it would be a lie to undo."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=1)
        raise


_COMMANDS: Mapping[str, Callable[[_Job], Awaitable[ToolResult]]] = {
    "view": _view,
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
    "undo_edit": _undo,
}
