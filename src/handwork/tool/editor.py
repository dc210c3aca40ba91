"""str_replace_editor: look at files and folders, create, edit byte for byte, and take edits back."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from handwork.errors import HandworkError, ToolError
from handwork.sandbox.base import Entry, Sandbox
from handwork.schema import JSON, Action, ToolResult
from handwork.tool.base import Tool, ToolContext
from handwork.tool.call_facts import has_results_of
from handwork.tool.editor_change import Change
from handwork.tool.editor_history import EditHistory
from handwork.tool.editor_path import check_path, in_words, led, look, refuse_special
from handwork.tool.editor_plan import PLANS, Job
from handwork.tool.editor_view import view_directory, view_file

_PREVIEW_SECONDS = 3.0
_COMMANDS = ("view", *PLANS)
_REVIEW = "Review the changes and make sure they are as expected (right place, indentation, no duplicates). Edit again if needed."


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
    _used: tuple[Sandbox, EditHistory] | None = None
    """Where this tool last worked, and the edits there: what a preview of undo_edit takes back."""

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        resource = str(arguments.get("path") or "*")
        read, write = Action(kind="read", resource=resource, repeatable=True), Action(kind="write", resource=resource)
        match arguments.get("command"):
            case "view":
                return [read]
            case "create":
                return [write]
        return [write, read]  # the answer shows what stands around an edit

    async def preview(self, arguments: Mapping[str, JSON], sandbox: Sandbox) -> str:
        """The diff that the call would make; '' for a view, and for a call that would fail or takes long to foresee."""
        command, path = str(arguments.get("command")), str(arguments.get("path") or "")
        if command not in PLANS:
            return ""
        history = self._used[1] if self._used and self._used[0] is sandbox else EditHistory()
        try:
            async with asyncio.timeout(_PREVIEW_SECONDS):
                check_path(path)
                await led(sandbox, path, command)
                _, change = await PLANS[command](Job(path, arguments, sandbox, history))
        except (HandworkError, OSError):  # the call itself will say what is wrong with it
            return ""
        return change.diff.text

    async def execute(self, *, context: ToolContext, command: str, path: str, **arguments: Any) -> ToolResult:
        """Do one command. Errors: ToolError, each with its own text; nothing is changed then."""
        if command not in _COMMANDS:
            raise ToolError(f"Unrecognized command `{command}`. The allowed commands are: {', '.join(_COMMANDS)}")
        check_path(path)
        history = context.resource("editor", EditHistory)
        self._used = (context.sandbox, history)
        resumed = has_results_of(self.name, context.history)
        job = Job(path, arguments, context.sandbox, history, resumed)
        try:
            note = await led(job.sandbox, path, command)
            if command == "view":
                return await _view(job)
            async with history.lock:
                return _noted(await _edit(job, command), note)
        except OSError as error:
            raise ToolError(in_words(error, path, command)) from error

    def __getstate__(self) -> dict[str, Any]:
        """What another agent's copy shares: not the edits of this one's session."""
        return {name: value for name, value in vars(self).items() if name != "_used"}


def _noted(result: ToolResult, note: str | None) -> ToolResult:
    if not note:
        return result
    system, details = " ".join(filter(None, (result.system, note))), {**(result.details or {}), "private": True}
    return replace(result, system=system, details=details)


async def _view(job: Job) -> ToolResult:
    entry = await look(job.sandbox, job.path)
    view_range = job.arguments.get("view_range")
    if entry.kind == "directory":
        if view_range is not None:
            raise ToolError("The `view_range` parameter is not allowed when `path` points to a directory.")
        return await view_directory(job.sandbox, job.path)
    refuse_special(entry, job.path)
    return await view_file(job.sandbox, job.path, entry.size, view_range)


async def _edit(job: Job, command: str) -> ToolResult:
    """Plan the change and make it, unless somebody else has changed the file meanwhile."""
    entry, change = await PLANS[command](job)
    await _written(_store(job, change, undoes=command == "undo_edit"))
    details: dict[str, JSON] = {
        "path": job.path,
        "diff": change.diff.text,
        "added": change.diff.added,
        "removed": change.diff.removed,
    }
    if command == "undo_edit":
        details["undoes"] = True
    return ToolResult(output=_told(job, command, change), system=_of_links(entry), details=details)


def _told(job: Job, command: str, change: Change) -> str:
    match command:
        case "create":
            return f"File created successfully at: {job.path}"
        case "undo_edit" if change.after is None:
            return f"Creating {job.path} has been undone: the file is removed."
        case "undo_edit":
            return f"The last edit of {job.path} has been undone. Here's that place now:\n{change.snippet}"
    return (
        f"The file {job.path} has been edited. Here's the result of running `cat -n` on a snippet of {job.path}:\n"
        f"{change.snippet}\n{_REVIEW}"
    )


def _of_links(entry: Entry | None) -> str | None:
    """The rename that makes a write atomic parts a file from its other names, which a human may have meant to keep together."""
    if entry is None or entry.links < 2:
        return None
    return (
        f"The file had {entry.links} names (hard links). Only this one was changed; the others keep the content before."
    )


async def _store(job: Job, change: Change, *, undoes: bool) -> None:
    """Write the change, and note how it is taken back, or that it was."""
    real = await job.sandbox.resolve(job.path)
    if change.after is None:
        await job.sandbox.remove(job.path, expected=change.seen)
    else:
        await job.sandbox.write(job.path, change.after, exclusive=change.seen is None, expected=change.seen)
    if undoes:
        job.history.pop(real)
    else:
        job.history.add(real, change.record)


async def _written(work: Coroutine[Any, Any, None]) -> None:
    """Finish a write and its record together, also when the call is cancelled meanwhile: half of it would be a lie to undo."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=1)
        raise
