"""str_replace_editor: look at files and folders, create, edit byte for byte, and take edits back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from handwork.errors import ToolError
from handwork.sandbox.base import Sandbox
from handwork.schema import JSON, Action, ToolResult, scrub
from handwork.tool.base import Tool, ToolContext
from handwork.tool.call_facts import has_results_of
from handwork.tool.editor_history import Edit, EditHistory
from handwork.tool.editor_match import Edited, insert, replace
from handwork.tool.editor_path import check_path, in_words, look, refuse_special
from handwork.tool.editor_show import snippets, unified
from handwork.tool.editor_text import FileText, is_binary
from handwork.tool.editor_view import view_directory, view_file

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
    """View, create and edit files of the workspace (CONTRACT D3); tabs, line endings, encoding and mode survive."""

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
            if command == "view":
                return await work(job)
            async with history.lock:
                return await work(job)
        except OSError as error:
            raise ToolError(in_words(error, path, command)) from error


async def _view(job: _Job) -> ToolResult:
    entry = await look(job.sandbox, job.path)
    view_range = job.arguments.get("view_range")
    if entry.kind == "directory":
        if view_range is not None:
            raise ToolError("The `view_range` parameter is not allowed when `path` points to a directory.")
        return await view_directory(job.sandbox, job.path)
    refuse_special(entry, job.path)
    return await view_file(job.sandbox, job.path, entry.size, view_range)


async def _open(job: _Job) -> bytes:
    """The bytes of a text file that is to be edited."""
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
    return data


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
    data = text.encode()
    await _written(_store(job, None, data))
    details = {"path": job.path, "diff": unified(None, FileText.decode(data), job.path)}
    return ToolResult(output=f"File created successfully at: {job.path}", details=details)


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
    before = await _open(job)
    file, spans = FileText.decode(before), list[tuple[int, int]]()
    for number, edit in enumerate(edits, 1):
        try:
            edited = replace(file, scrub(edit["old_str"]), scrub(edit.get("new_str") or ""), job.path)
        except ToolError as error:
            if len(edits) == 1:
                raise
            raise ToolError(f"Edit {number} of {len(edits)} failed, so none was made. {error.message}") from None
        spans = _shifted(spans, edited, len(edited.file.text) - len(file.text))
        file = edited.file
    return await _save(job, before, file, spans)


def _shifted(spans: list[tuple[int, int]], edited: Edited, growth: int) -> list[tuple[int, int]]:
    """Earlier spans moved to where they lie after this edit, and its own."""
    border = edited.end - growth  # where the edit's place ended before it
    moved = [
        (start + growth, end + growth) if start >= border else (start, min(end, len(edited.file.text)))
        for start, end in spans
    ]
    return [*moved, (edited.start, edited.end)]


async def _insert(job: _Job) -> ToolResult:
    line = job.need("insert_line", "insert")
    if not isinstance(line, int):
        raise ToolError(f"Invalid `insert_line` {line!r}: it must be a whole number.")
    new = scrub(job.need("new_str", "insert"))
    before = await _open(job)
    edited = insert(FileText.decode(before), line, new, job.path)
    return await _save(job, before, edited.file, [(edited.start, edited.end)])


async def _save(job: _Job, before: bytes, file: FileText, spans: Sequence[tuple[int, int]]) -> ToolResult:
    await _written(_store(job, before, file.encode()))
    output = (
        f"The file {job.path} has been edited. Here's the result of running `cat -n` on a snippet of {job.path}:\n"
        f"{snippets(file, spans)}\n{_REVIEW}"
    )
    return ToolResult(
        output=output, details={"path": job.path, "diff": unified(FileText.decode(before), file, job.path)}
    )


async def _store(job: _Job, before: bytes | None, after: bytes) -> None:
    await job.sandbox.write(job.path, after, exclusive=before is None)
    job.history.add(await job.sandbox.resolve(job.path), Edit.between(before, after))


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
    if now is None or not edit.fits(now):
        what = "no longer exists" if now is None else "has changed since its last edit here"
        raise ToolError(
            f"Cannot undo: {job.path} {what} (by a command, or by hand), and undoing would destroy that later work. "
            "View it, and make the change with `str_replace`, or `create` it again."
        )
    before = edit.undone(now)
    await _written(_take_back(job, real, before))
    after = FileText.decode(before) if before is not None else None
    details = {"path": job.path, "diff": unified(FileText.decode(now), after, job.path)}
    if after is None:
        return ToolResult(output=f"Creating {job.path} has been undone: the file is removed.", details=details)
    end = len(FileText.decode(before[: len(before) - edit.kept]).text) if before else 0
    start = len(FileText.decode(before[: edit.start]).text) if before else 0
    output = f"The last edit of {job.path} has been undone. Here's that place now:\n{snippets(after, [(start, max(start, end))])}"
    return ToolResult(output=output, details=details)


async def _take_back(job: _Job, real: str, before: bytes | None) -> None:
    if before is None:
        await job.sandbox.remove(job.path)
    else:
        await job.sandbox.write(job.path, before)
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
