"""search_files: which lines of which files hold a text, or which files are called so; a project's ignored files left out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pydantic_core import from_json

from handwork.errors import ToolError
from handwork.sandbox.base import Sandbox
from handwork.schema import JSON, Action, ToolResult, scrub
from handwork.tool.base import Tool, ToolContext
from handwork.tool.editor_path import check_path, in_words, led, look
from handwork.tool.wording import counted

_SECONDS = 20.0
_GRACE = 5.0
"""Seconds beyond the search's own limit, for it to say what it has found until then."""
_LONGEST = 1000
_CODE = (
    "import sys; sys.dont_write_bytecode = True; sys.path.append(sys.argv[1]); "
    "from search_inside.main import main; main()"
)
_ENDED = {
    "time": "The search was stopped after {seconds:.0f} s, so this is not all: name a folder in `path`.",
    "matches": "The search was stopped after {matches:,} matches: make the query narrower, or name a folder in `path`.",
    "files": "The search was stopped after 500,000 files and folders: name a folder in `path`.",
}


class SearchFiles(Tool):
    """Searches the workspace for lines or for names of files (CONTRACT D22), always inside the sandbox.

    Python's standard library does it, in the sandbox; ripgrep, if it is there, says which files need not be read. The result is
    the same. Files that .gitignore or .ignore leave out, hidden ones, binary ones and what links lead to are not searched,
    unless `path` names them.
    """

    name = "search_files"
    description = (
        "Search files below a folder. kind=content (default): lines in which the query is found, by file, with line numbers. "
        "kind=name: files and folders whose name holds it (whose path, if the query has a slash); a glob such as *.py will do.\n"
        "The query is a regular expression (Python's syntax, one line at a time), or plain text if it is no valid one. "
        "Case counts only if it has a capital letter. What .gitignore and .ignore leave out, hidden and binary files "
        "are skipped: name such a file or folder in `path` to search it."
    )
    parameters: Mapping[str, JSON] = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "The regular expression or text to find."},
            "path": {"type": "string", "description": "The folder or file to search; absent: the workspace."},
            "kind": {
                "type": "string",
                "enum": ["content", "name"],
                "description": "Search in the files' content (default), or in their names.",
            },
            "page": {"type": "integer", "minimum": 1, "description": "Which page of a long result, from 1."},
        },
        "required": ["query"],
    }
    sandboxed = True

    def actions(self, arguments: Mapping[str, JSON]) -> Sequence[Action]:
        return [Action(kind="read", resource=str(arguments.get("path") or "."), repeatable=True, sifted=True)]

    async def execute(
        self, *, context: ToolContext, query: str, path: str = ".", kind: str = "content", page: int = 1
    ) -> ToolResult:
        """One page of what is found. Errors: ToolError for a query or path that cannot be one."""
        query, path = scrub(query), path or "."
        _check(query, kind, page)
        sandbox, seconds = context.sandbox, _time_left(context)
        wanted = {"query": query, "kind": kind, "page": page, "seconds": seconds, "ripgrep": True}
        found = await _search(sandbox, {**wanted, **await _place(sandbox, path)}, seconds)
        if not sandbox.contained:
            await _leave_out_refused(sandbox, found)
        _leave_out_forbidden(context, found)
        return _result(found, wanted, path)


def _check(query: str, kind: str, page: int) -> None:
    if not query:
        raise ToolError("`query` is empty: give a text or a regular expression. kind=name with `.` lists all files.")
    if len(query) > _LONGEST:
        raise ToolError(f"`query` has {len(query)} characters, at most {_LONGEST} are searched for.")
    if "\n" in query or "\r" in query:
        raise ToolError("`query` holds a line end, and one line is searched at a time: give one of its lines.")
    if kind not in ("content", "name"):
        raise ToolError(f"Unknown kind {kind!r}: it is content or name.")
    if page < 1:
        raise ToolError(f"Invalid `page` {page}: pages are counted from 1.")


def _time_left(context: ToolContext) -> float:
    if context.deadline is None:
        return _SECONDS
    return max(min(_SECONDS, context.deadline - asyncio.get_running_loop().time()), 0.1)


async def _place(sandbox: Sandbox, path: str) -> dict[str, JSON]:
    """Where to search, on real paths. Errors: ToolError."""
    check_path(path)
    try:
        await led(sandbox, path, "view")
        entry = await look(sandbox, path)
        if entry.kind not in ("file", "directory"):
            raise ToolError(f"{path} is neither a file nor a folder (a pipe, socket, device or a link in a circle).")
        workspace, root = await sandbox.resolve("."), await sandbox.resolve(path)
    except OSError as error:
        raise ToolError(in_words(error, path, "view")) from error
    return {"workspace": workspace, "root": root, "alone": entry.kind == "file"}


async def _search(sandbox: Sandbox, wanted: Mapping[str, JSON], seconds: float) -> dict[str, Any]:
    command = [sandbox.python, "-I", "-S", "-c", _CODE, f"{sandbox.package}/tool"]
    done = await sandbox.exec(command, stdin=json.dumps(wanted).encode(), timeout=seconds + _GRACE)
    try:
        found = from_json(done.output)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        why = "it took too long" if done.timed_out else done.stderr.decode(errors="replace").strip()[-500:]
        raise ToolError(f"The search failed: {why or f'it ended with {done.exit_code}'}. Use bash (grep -rn, find).")
    return found


async def _leave_out_refused(sandbox: Sandbox, found: dict[str, Any]) -> None:
    """Nothing confines a program on the host: what its file tools may not read is not shown either."""
    kept = []
    for group in found["shown"]:
        file = PurePosixPath(group["file"])
        asked = (
            [file.parent] if group["file"].endswith("@") else [file.parent, file]
        )  # a link is shown, not what it leads to
        try:
            for path in asked:
                await sandbox.stat(str(path))
        except OSError:
            found["unreadable"] += 1
        else:
            kept.append(group)
    found["shown"] = kept


def _leave_out_forbidden(context: ToolContext, found: dict[str, Any]) -> None:
    """What rules forbid to read is not shown; the sandbox masks what was there when it started, this is for the rest."""
    kept = []
    for group in found["shown"]:
        path = group["file"].rstrip("/@")
        if context.forbids(path if path.startswith("/") else f"{context.sandbox.workspace.rstrip('/')}/{path}"):
            found["unreadable"] += 1
            found["matches"] -= max(len(group["lines"]) + group["more"], 1)
            found["files"] -= found["files"] > 0
        else:
            kept.append(group)
    found["shown"] = kept


def _result(found: Mapping[str, Any], wanted: Mapping[str, Any], path: str) -> ToolResult:
    names = wanted["kind"] == "name"
    shown = [_group(group) for group in found["shown"]]
    details = {name: found[name] for name in ("matches", "files", "pages")}
    return ToolResult(
        output=("\n" if names else "\n\n").join(shown) or "(nothing found)",
        system=" ".join(_notes(found, wanted, names)) or None,
        details={"path": path, "query": wanted["query"], "page": wanted["page"], **details},
    )


def _group(group: Mapping[str, Any]) -> str:
    lines = [f"{number:6}\t{text}" for number, text in group["lines"]]
    if group["more"]:
        lines.append(f"   ... {counted(group['more'], 'more line')} of this file: name it in `path` to see the rest")
    return "\n".join([group["file"], *lines])


def _notes(found: Mapping[str, Any], wanted: Mapping[str, Any], names: bool) -> list[str]:
    notes, page, pages = [*found["notes"]], wanted["page"], found["pages"]
    lines = f"{counted(found['matches'], 'matching line')} in {counted(found['files'], 'file')}"
    what = counted(found["matches"], "name") if names else lines
    if found["matches"] and page > pages:
        notes.append(f"There is no page {page}: {what}, on {counted(pages, 'page')}.")
    elif found["matches"]:
        notes.append(f"{what}; page {page} of {pages}.")
    if page < pages:
        notes.append(f"page={page + 1} has the next.")
    if found["ended"] in _ENDED:
        notes.append(_ENDED[found["ended"]].format(seconds=wanted["seconds"], matches=found["matches"]))
    if found["unreadable"]:
        notes.append(f"{counted(found['unreadable'], 'file or folder', 'files or folders')} could not be read.")
    if found["slow"]:
        notes.append(
            f"{counted(found['slow'], 'file')} given up after 3 s each: this expression is slow on long lines."
        )
    if not found["matches"] and (left := _left_out(found)):
        notes.append(f"Not searched: {left}; name one in `path` to search it.")
    return notes


def _left_out(found: Mapping[str, Any]) -> str:
    kinds = (
        ("ignored", "that .gitignore or .ignore leave out"),
        ("hidden", "that are hidden"),
        ("binary", "that are binary"),
    )
    return ", ".join(f"{found[kind]:,} {words}" for kind, words in kinds if found[kind])
