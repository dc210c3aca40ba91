"""Paths as the editor meets them: what cannot be a path, what stands there, and each failure in words of its own."""

from __future__ import annotations

import errno
import posixpath
from pathlib import PurePosixPath

from handwork.errors import ToolError
from handwork.sandbox.base import Entry, Sandbox
from handwork.tool.editor_hint import closest


def check_path(path: str) -> None:
    """Refuse what no file can be called. Errors: ToolError."""
    if not path.strip():
        raise ToolError("`path` is empty: give the file or folder, absolute or relative to the workspace.")
    if "\0" in path:
        raise ToolError("`path` holds a NUL character, which no file name can.")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise ToolError("`path` holds a broken character (a lone surrogate), which no file name can.") from None
    if size > 4095 or max(len(part.encode()) for part in path.split("/")) > 255:
        raise ToolError(
            f"`path` is too long ({size} bytes): a path has at most 4095 bytes, each name in it at most 255."
        )


def in_words(error: OSError, path: str, command: str) -> str:
    """What the operating system said, for the model."""
    verb = "view" if command == "view" else "change"
    if error.errno == errno.ESTALE:
        return (
            f"{path} has changed meanwhile: somebody else (a background job, perhaps) wrote to it after it was read here. "
            "Nothing was changed: view it again, then make the change."
        )
    match error:
        case FileExistsError():
            return (
                f"Cannot create {path}: a file of that name already exists. Use `str_replace` or `insert` to edit it."
            )
        case FileNotFoundError():
            return f"The path {path} does not exist. Give a valid path."
        case IsADirectoryError():
            return f"The path {path} is a directory, and only the `view` command can be used on directories."
        case NotADirectoryError():
            return f"Cannot {verb} {path}: a part of this path is a file, not a directory."
        case PermissionError():
            return f"Cannot {verb} {path}: permission denied. It may lead out of the workspace (by a symbolic link) or be read-only."
    return f"Cannot {verb} {path}: {error.strerror or error}"


_PRIVATE = (
    "This file is in the sandbox's own {folder}, not in the workspace {workspace}: it is gone when the session ends."
)


async def led(sandbox: Sandbox, path: str, command: str) -> str | None:
    """Check where the path leads: inside the workspace, or not through a link and only to be read, or to what is private here.

    Returns what to say beside a change that will not last. Errors: ToolError; OSError as the sandbox's.
    """
    real = await sandbox.resolve(path)
    workspace = await sandbox.resolve(".")
    if real == workspace or _below(real, workspace):
        await _refuse_dangling(sandbox, path, real)
        return None
    private = await _private(sandbox, real)
    asked = posixpath.normpath(posixpath.join(workspace, path))
    if private is None and _below(asked, workspace):
        how = "is" if await _is_link(sandbox, path, real) else "leads through"
        raise ToolError(
            f"{path} {how} a symbolic link to {real}, which leaves the workspace {workspace}: not followed."
        )
    if private is None and command != "view":
        raise ToolError(
            f"Cannot change {path}: it leads to {real}, which is outside of the workspace {workspace}. "
            "Give a path in the workspace."
        )
    await _refuse_dangling(sandbox, path, real)
    return None if private is None or command == "view" else _PRIVATE.format(folder=private, workspace=workspace)


def _below(path: str, folder: str) -> bool:
    return PurePosixPath(path).is_relative_to(folder)


async def _private(sandbox: Sandbox, real: str) -> str | None:
    """The sandbox's own folder (temporary files, home) that holds this, if one does; it ends with the session."""
    told = await sandbox.exec(["/bin/sh", "-c", r'printf "%s\n%s" "$TMPDIR" "$HOME"'], timeout=10)
    for folder in told.output.decode(errors="replace").split("\n"):
        if folder.startswith("/") and _below(real, await sandbox.resolve(folder)):
            return folder
    return None


async def _is_link(sandbox: Sandbox, path: str, real: str) -> bool:
    """Whether the last name of the path is itself a link, seen without following it."""
    where = PurePosixPath(path)
    return where.name not in ("", "..") and real != posixpath.join(await sandbox.resolve(str(where.parent)), where.name)


async def _refuse_dangling(sandbox: Sandbox, path: str, real: str) -> None:
    if not await _is_link(sandbox, path, real):
        return
    try:
        entry = await sandbox.stat(path)
    except PermissionError:
        return  # whoever opens it says so better
    if entry is None:
        raise ToolError(f"{path} is a symbolic link to {real}, which is not there. Give the path of the file itself.")


async def look(sandbox: Sandbox, path: str) -> Entry:
    """What stands at the path. Errors: ToolError, with the nearest names, if nothing does."""
    entry = await sandbox.stat(path)
    if entry is None:
        raise ToolError(f"The path {path} does not exist. Give a valid path.{await _similar(sandbox, path)}")
    return entry


async def _similar(sandbox: Sandbox, path: str) -> str:
    """The nearest names in the same folder, if there is one."""
    where = PurePosixPath(path)
    try:
        entries = await sandbox.list(str(where.parent), limit=2000)
    except OSError:
        return ""
    close = closest(where.name, [entry.path for entry in entries if entry.path != where.name])
    return f" Did you mean {' or '.join(str(where.parent / name) for name in close)}?" if close else ""


def refuse_special(entry: Entry, path: str) -> None:
    """Refuse what is no regular file: reading a pipe would wait for ever. Errors: ToolError."""
    if entry.kind == "directory":
        raise ToolError(f"The path {path} is a directory, and only the `view` command can be used on directories.")
    if entry.kind == "symlink":
        raise ToolError(f"{path} is a symbolic link that leads round in a circle. Give the path of the file itself.")
    if entry.kind != "file":
        raise ToolError(
            f"The path {path} is neither a file nor a directory (a pipe, socket or device): use bash for it."
        )
