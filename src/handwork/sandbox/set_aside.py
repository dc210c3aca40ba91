"""Move what may not lie in a workspace to the session's artifacts, put back what was changed, and tell it: the user once a look."""

from __future__ import annotations

import os
from pathlib import Path

from handwork.sandbox import beneath
from handwork.sandbox.keepsakes import Keepsakes
from handwork.sandbox.ruled import remedy
from handwork.sandbox.sentences import MOST
from handwork.sandbox.texts import shown
from handwork.schema import Notify

FOLDER = "set-aside"
"""Within the session's artifacts: what was put away."""


class SetAside:
    """`root` is a descriptor of the workspace. What was moved is told to the user by `report`, each path once."""

    def __init__(self, root: int, artifacts: Path, notify: Notify) -> None:
        self._root, self._folder, self._notify = root, artifacts / FOLDER, notify
        self._said = set[str]()
        self._moved: list[tuple[str, Path, str]] = []

    def put_away(self, path: str, why: str) -> list[str]:
        """Move it away; sentences for the model."""
        try:
            target = self._move(path)
        except FileNotFoundError:  # whoever made it took it away again
            return []
        except OSError as error:
            self._tell(path, f"could not be moved away ({error.strerror or error}): look at it before you go on", why)
            return []
        if self._is_news(path):
            self._moved.append((path, target, why))
        return [
            f"{shown(path)} may not appear in this workspace: {why}. It was moved to {target}. "
            f"Do not make it again: {remedy(why)}."
        ]

    def restore(self, path: str, why: str, keepsakes: Keepsakes) -> list[str]:
        """Have a file as it was; sentences for the model."""
        try:
            gone = beneath.look(self._root, path) is None
            kept = "" if gone else f"; what stood there was moved to {self._move(path)}"
            keepsakes.put_back(path)
        except OSError as error:
            self._tell(path, f"was changed, and could not be put back ({error.strerror or error})", why)
            return []
        self._tell(path, f"was changed, and is again what it was{kept}", why)
        return [f"{shown(path)} may not be changed, because {why}: it is again what it was{kept}."]

    def report(self) -> None:
        """Tell the user what was moved since the last report, in one notice."""
        moved, self._moved = self._moved, []
        if len(moved) == 1:
            ((path, target, why),) = moved
            self._notify("warning", _sentence(path, f"was moved to {target}", why))
        elif moved:
            rows = [f"  {shown(path)} → {target.name} ({why})" for path, target, why in moved]
            head = f"{len(moved)} things that programs may not make in the workspace were moved to {self._folder}:"
            self._notify("warning", "\n".join((head, *rows)))

    def _move(self, path: str) -> Path:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = shown(path).replace("/", "_").lstrip(".").encode()[:100].decode(errors="ignore") or "unnamed"
        number = 1
        while os.path.lexists(target := self._folder / (name if number == 1 else f"{name}-{number}")):
            number += 1
        beneath.move_out(self._root, path, target)
        return target

    def _tell(self, path: str, what: str, why: str) -> None:
        if self._is_news(path):
            self._notify("warning", _sentence(path, what, why))

    def _is_news(self, path: str) -> bool:
        """Whether to tell the user: what makes it again and again, or ever more, need not fill the screen."""
        if path in self._said or len(self._said) > MOST:
            return False
        self._said.add(path)
        if len(self._said) <= MOST:
            return True
        text = f"Programs make more and more files that they may not; what comes is moved to {self._folder}, untold."
        self._notify("warning", text)
        return False


def _sentence(path: str, what: str, why: str) -> str:
    return f"In the workspace, {shown(path)} {what}. Programs may not change it, because {why}."
