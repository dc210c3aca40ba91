"""The `view` command: a file with line numbers, in bounded memory however large it is, or a folder two levels deep."""

from __future__ import annotations

from functools import partial
from typing import Any

from handwork.errors import ToolError
from handwork.sandbox.base import Sandbox
from handwork.schema import ToolResult
from handwork.tool.editor_show import MAX_VIEW, numbered
from handwork.tool.editor_text import FileText, is_binary, is_wide
from handwork.tool.threads import off_loop

_WHOLE = 16_000_000
_CHUNK = 4_000_000
_MAX_ENTRIES = 1000


async def view_directory(sandbox: Sandbox, path: str) -> ToolResult:
    """The files and folders two levels deep, without hidden ones."""
    entries = await sandbox.list(path, depth=2, hidden=False, limit=_MAX_ENTRIES + 1)
    base = path.rstrip("/")
    signs = {"directory": "/", "symlink": "@"}
    shown = [f"{base}/{entry.path}{signs.get(entry.kind, '')}" for entry in entries[:_MAX_ENTRIES] if entry.path]
    text = f"Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:\n"
    note = None
    if len(entries) > _MAX_ENTRIES:
        note = f"Only the first {_MAX_ENTRIES} entries are shown: view a folder below, or use bash (find)."
    return ToolResult(output=text + ("\n".join(shown) or "(nothing)"), system=note, details={"path": path})


async def view_file(sandbox: Sandbox, path: str, size: int, view_range: Any) -> ToolResult:
    """A text file, or a range of its lines, as `cat -n` shows it.

    Errors: ToolError for a binary file, and for a range that is malformed or out of the file.
    """
    first, last = _range(view_range)
    if size > _WHOLE:
        return await _view_huge(sandbox, path, size, first, last)
    data = await sandbox.read(path)
    _refuse_binary(data, path, size)
    return await off_loop(partial(_shown, data, path, (first, last), view_range is not None), size)


def _shown(data: bytes, path: str, lines: tuple[int, int], checked: bool) -> ToolResult:
    file = FileText.decode(data)
    count, (first, last) = len(file.lines), lines
    if checked:
        _check_range(first, last, max(count, 1), path)
    end = count if last == -1 else last
    text, reached = numbered(file.lines[first - 1 : end], first)
    return _result(path, text, reached, min(end, count), file, str(count))


def _range(view_range: Any) -> tuple[int, int]:
    if view_range is None:
        return 1, -1
    whole = isinstance(view_range, list | tuple) and len(view_range) == 2
    if not whole or not all(isinstance(part, int) and not isinstance(part, bool) for part in view_range):
        raise ToolError(f"Invalid `view_range` {view_range}: it must be a list of two integers, [first, last].")
    first, last = view_range
    if first < 1:
        raise ToolError(f"Invalid `view_range` {view_range}: lines are counted from 1.")
    if last != -1 and last < first:
        raise ToolError(
            f"Invalid `view_range` {view_range}: the last line must not be before the first (-1 is the end)."
        )
    return first, last


def _check_range(first: int, last: int, count: int, path: str) -> None:
    if max(first, last) > count:
        lines = "1 line" if count == 1 else f"{count} lines"
        raise ToolError(f"Invalid `view_range` {[first, last]}: {path} has {lines}, so it must be within [1, {count}].")


def _refuse_binary(data: bytes, path: str, size: int) -> None:
    if is_binary(data):
        raise ToolError(
            f"{path} is a binary file ({size} bytes) and cannot be shown as text. Use bash (file, xxd) or python_execute."
        )


def _result(path: str, text: str, reached: int, wanted: int, file: FileText, count: str) -> ToolResult:
    notes = []
    if reached < wanted:
        notes.append(
            f"Lines {reached + 1} to {wanted} are not shown: view them with view_range=[{reached + 1}, {wanted}]."
        )
    if file.encoding != "utf-8" or file.errors != "strict":
        name = file.encoding if file.errors == "strict" else "UTF-8 with stray bytes, shown as \ufffd"
        notes.append(f"The file's encoding is {name}; edits keep it.")
    if file.ending != "\n":
        notes.append(
            f"Its lines end with {'CRLF' if file.ending != chr(13) else 'CR'}; edits keep that, write plain line ends."
        )
    output = f"Here's the result of running `cat -n` on {path}:\n{text or '(the file is empty)'}"
    return ToolResult(output=output, system=" ".join(notes) or None, details={"path": path, "lines": count})


async def _view_huge(sandbox: Sandbox, path: str, size: int, first: int, last: int) -> ToolResult:
    """Read piece by piece up to the range; only what can be shown is kept."""
    kept, lines, offset = b"", 1, 0  # `kept` begins in line `lines`, at or before the first one wanted
    while offset < size and (chunk := await sandbox.read(path, offset=offset, limit=_CHUNK)):
        if not offset:
            _refuse_binary(chunk, path, size)
            if is_wide(chunk):
                raise ToolError(
                    f"{path} is huge ({size} bytes) and UTF-16 or UTF-32: convert it first (with bash: iconv)."
                )
        offset += len(chunk)
        skip = 0
        while lines < first and (at := chunk.find(b"\n", skip)) >= 0:
            skip, lines = at + 1, lines + 1
        if lines < first:
            continue
        kept += chunk[skip:]
        if len(kept) > MAX_VIEW * 4 or (last != -1 and kept.count(b"\n") > last - first):
            break
    if lines < first:
        raise ToolError(f"Invalid `view_range` {[first, last]}: {path} has only {lines} lines.")
    file = FileText.decode(kept[: MAX_VIEW * 4])
    end = len(file.lines) if last == -1 else last - first + 1
    text, reached = numbered(file.lines[:end], first)
    result = _result(path, text, reached, reached, file, "unknown")
    note = (
        f"{path} is huge ({size} bytes): lines {first} to {reached} are shown. Use view_range, or bash (grep, sed -n)."
    )
    return result.replace(system=" ".join(filter(None, (note, result.system))))
