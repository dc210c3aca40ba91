"""Whether a server's program can be seen in the sandbox, and which folder it would need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from handwork.config import MCPServerSettings
from handwork.sandbox.environment import base_environment
from handwork.sandbox.root import python_folders, system_places

_HOMES = ("/", "/home", "/root", "/opt", "/var", "/tmp", "/usr", "/srv", "/mnt", "/media")


@dataclass(frozen=True, slots=True)
class Hidden:
    """A program that the sandbox does not show: `command` is how it can be started there, once `paths` are shown."""

    command: str
    paths: tuple[str, ...]


def is_visible(path: str | Path, more: tuple[str, ...] = (), workspace: Path | None = None) -> bool:
    """Whether the sandbox shows a file, by its real path."""
    real = Path(os.path.realpath(path))
    places = [*system_places(network=False), *python_folders(), *(Path(each).expanduser() for each in more)]
    places += [workspace] if workspace else []
    return any(real.is_relative_to(os.path.realpath(place)) for place in places)


def folder_of(program: str) -> str:
    """The folder that a program belongs to (with its bin and lib), or the program alone where that would be too much."""
    real = Path(os.path.realpath(program))
    folder = real.parent.parent if real.parent.name in ("bin", "sbin") else real.parent
    home = Path.home()
    if str(folder) in _HOMES or home.is_relative_to(folder):
        return str(real)
    return str(folder)


def hidden_program(settings: MCPServerSettings, workspace: Path) -> Hidden | None:
    """The program of a server that is here and not in the sandbox; None if it is there, is nowhere, or runs beside the sandbox."""
    if settings.type != "stdio" or not settings.sandbox:
        return None
    command = str(Path(settings.command).expanduser()) if settings.command.startswith("~") else settings.command
    if in_the_sandbox(command):
        return None
    found = shutil.which(command)
    if found is None:
        return None
    found = str(Path(found).absolute())
    seen = is_visible(found, settings.paths, workspace) and is_visible(Path(found).parent, settings.paths, workspace)
    wanted = [] if seen else [folder_of(found)]
    wanted += [] if is_visible(Path(found).parent, (*settings.paths, *wanted), workspace) else [found]
    if (interpreter := _interpreter(found)) and not is_visible(interpreter, (*settings.paths, *wanted), workspace):
        wanted.append(folder_of(interpreter))
    named = settings.command if "/" in command and not command.startswith("~") else found
    if not wanted and named == settings.command:
        return None
    return Hidden(named, tuple(dict.fromkeys(wanted)))


def hidden_arguments(settings: MCPServerSettings, workspace: Path) -> list[str]:
    """The whole paths among a server's arguments that are here and that its sandbox would not show."""
    if settings.type != "stdio" or not settings.sandbox:
        return []
    whole = [each for each in settings.args if each.startswith("/")]
    return [each for each in dict.fromkeys(whole) if _is_here(each) and not is_visible(each, settings.paths, workspace)]


def files_of_this_folder(arguments: Sequence[str], workspace: Path) -> list[str]:
    """The files among a server's arguments that are found from this workspace only."""
    return [
        each for each in arguments if not each.startswith(("/", "-", "~")) and _is_here(workspace / each, file=True)
    ]


def _is_here(path: str | Path, *, file: bool = False) -> bool:
    try:
        return Path(path).is_file() if file else Path(path).exists()
    except (OSError, ValueError):
        return False


def in_the_sandbox(command: str) -> bool:
    """Whether the sandbox finds a program by its bare name."""
    there = shutil.which(command, path=base_environment("/", "/")["PATH"]) if "/" not in command else None
    return there is not None and is_visible(there)


def _interpreter(program: str) -> str:
    """What the first line of a script names; '' for none."""
    try:
        with Path(program).open("rb") as stream:
            first = stream.readline(256)
    except OSError:
        return ""
    words = first[2:].decode(errors="replace").split() if first.startswith(b"#!") else []
    if words[:1] and Path(words[0]).name == "env":
        return shutil.which(words[1]) or "" if len(words) > 1 else ""
    return words[0] if words else ""
