"""What Tab offers: commands, and paths after an @ and after /image."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from handwork.cli.chat.pasted import IMAGES, mention

_CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".cache", ".tox"}
NOISE = frozenset(
    {".git", ".hg", ".svn", "node_modules", ".venv", "venv", ".idea", ".next", "target", "dist", "build", *_CACHES}
)
"""Folders that nobody means."""
_MOST = 50
_ENTRIES = 5000
_SECONDS = 0.15
"""A large folder is looked at for so long; what was found by then is offered."""
_IMAGE = re.compile(r'/image[ \t]+("?)([^"\n]*)\Z')
_AT = re.compile(r'(?<!\S)@("?)([^"\n]*)\Z')


class ChatCompleter(Completer):
    """`commands` are names with what they do; `folder` says where paths begin; `prompts` are the names that servers add."""

    def __init__(
        self,
        commands: Mapping[str, str],
        folder: Callable[[], Path],
        prompts: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._commands, self._folder, self._prompts = commands, folder, prompts

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.startswith("/") and not re.search(r"\s", before):
            yield from self._command(before)
            return
        if found := _IMAGE.match(before):
            for path in self._path(found[2], len(found[0]) - found.start(1)):
                if str(path.display_text).endswith("/") or Path(path.display_text).suffix.lower() in IMAGES:
                    yield path
            return
        found = _AT.search(before)
        if found and (found[1] or not re.search(r"\s", found[2])):
            yield from self._path(found[2], len(found[0]) - 1)

    def _command(self, begun: str) -> Iterator[Completion]:
        for name, meaning in [*self._commands.items(), *self._prompts().items()]:
            if name.startswith(begun):
                yield Completion(name, -len(begun), display_meta=meaning)

    def _path(self, begun: str, written: int) -> Iterator[Completion]:
        folder = self._folder()
        for path in list(_below(folder, begun)) or list(_anywhere(folder, begun)):
            text = mention(path)[1:]
            yield Completion(text, -written, display=path)


def _below(folder: Path, begun: str) -> Iterator[str]:
    """Paths that go on as was begun, folders first."""
    head, slash, name = begun.rpartition("/")
    try:
        place = folder / Path(head + slash).expanduser() if head or slash else folder
        entries = _entries(place)
    except (OSError, RuntimeError, ValueError):
        return
    fits = [(not is_folder, entry) for entry, is_folder in entries if entry.lower().startswith(name.lower())]
    shown = [fit for fit in fits if name.startswith(".") or not fit[1].startswith(".")]
    for no_folder, entry in sorted(shown)[:_MOST]:
        yield f"{head}{slash}{entry}{'' if no_folder else '/'}"


def _anywhere(folder: Path, begun: str) -> Iterator[str]:
    """Paths below the folder that hold what was typed, the nearest first."""
    wanted = begun.lower()
    if not wanted or wanted.startswith(("/", "~", "..")):
        return
    until, found = time.monotonic() + _SECONDS, 0
    waiting = deque([""])
    while waiting and time.monotonic() < until:
        below = waiting.popleft()
        try:
            entries = sorted(_entries(folder / below))
        except OSError:
            continue
        for entry, is_folder in entries:
            path = f"{below}{entry}"
            if is_folder and not entry.startswith("."):
                waiting.append(f"{path}/")
            if wanted in path.lower():
                yield f"{path}/" if is_folder else path
                found += 1
                if found == _MOST:
                    return


def _entries(folder: Path) -> list[tuple[str, bool]]:
    """(name, whether it is a folder) of what a folder holds, without noise."""
    entries = []
    with os.scandir(folder) as scan:
        for place, entry in enumerate(scan):
            if place == _ENTRIES:
                break
            is_folder = _is_folder(entry)
            if not (is_folder and entry.name in NOISE) and entry.name.isprintable():
                entries.append((entry.name, is_folder))
    return entries


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
