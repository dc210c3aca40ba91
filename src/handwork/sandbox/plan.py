"""The mounts of a bwrap sandbox by place: what lies deeper is mounted later, and what one of them makes needless is left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

Opener: TypeAlias = Callable[[Path], int | None]
"""Gives a descriptor of a place in the workspace, and None for one that is named by its path."""


class Plan:
    """See the module. `system` are the places that are shown already."""

    def __init__(self, system: Sequence[str]) -> None:
        self._system = system
        self._mounts: dict[str, list[str]] = {}
        self._masks: set[str] = set()

    def add(self, place: str, *arguments: str) -> None:
        self._mounts[place] = list(arguments)

    def tmpfs(self, place: str, size: Sequence[str]) -> None:
        self.add(place, "--perms", "1777" if place == "/tmp" else "0700", *size, "--tmpfs", place)

    def read_only(self, path: Path, within: Path) -> None:
        """Bind a folder at its real place, and make the links on the way to it, so that its name works, too."""
        links, real = follow(path)
        for link, target in links.items():
            self.add(link, "--symlink", target, link)
        if real.is_relative_to("/usr") or real == Path("/"):
            return
        if real.is_file() and real != path and any(str(real).startswith(place + "/") for place in self._mounts):
            return
        self._pin(real, within)
        self.add(str(real), "--ro-bind", str(real), str(real))

    def hold(self, path: Path, workspace: Path) -> None:
        """Have a file or folder of the workspace read-only, and where it is."""
        self._pin(path, workspace)
        self.add(str(path), "--ro-bind", str(path), str(path))

    def pin(self, folder: Path, workspace: Path) -> None:
        """Have a folder of the workspace stay where it is."""
        self._pin(folder / "below", workspace)

    def mute(self, socket: Path, workspace: Path) -> None:
        """Put something over a socket that nobody can connect to."""
        self._pin(socket, workspace)
        self.add(str(socket), "--ro-bind", "/dev/null", str(socket))

    def mask(self, path: Path, workspace: Path) -> None:
        """Put emptiness over a path that would be seen."""
        real = Path(os.path.realpath(path))
        if not self._covered(str(real)):
            return
        self._pin(real, workspace)
        self._masks.add(str(real))
        if real.is_file():
            self.add(str(real), "--ro-bind", "/dev/null", str(real))
        else:
            real.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.add(str(real), "--perms", "0555", "--tmpfs", str(real))

    def shut(self, path: Path, workspace: Path) -> None:
        """Put over a file or folder of the workspace what nobody can open. What this python needs stays."""
        place = str(path)
        if self._mounts.get(place, ["--bind"])[0] != "--bind":
            return
        self._pin(path, workspace)
        if not path.is_dir():
            self.add(place, "--ro-bind", "/dev/null", place)
            return
        self._masks.add(place)
        within = any(how[0] != "--bind" for name, how in self._mounts.items() if name.startswith(place + "/"))
        self.add(place, "--perms", "0111" if within else "0000", "--tmpfs", place)

    def settle(self, workspace: Path) -> None:
        """Leave out folders that were mounted to stay where they are, and lie in what is read-only or masked: they would be
        writable there, or be seen."""
        closed = [
            name
            for name, how in self._mounts.items()
            if Path(name).is_relative_to(workspace) and how[0] in ("--ro-bind", "--perms")
        ]
        for place, how in list(self._mounts.items()):
            if how[0] == "--bind" and any(place.startswith(f"{each}/") for each in closed):
                del self._mounts[place]

    def _covered(self, place: str) -> bool:
        shown = [name for name, how in self._mounts.items() if how[0] in ("--bind", "--ro-bind")]
        return any(place == name or place.startswith(name + "/") for name in (*self._system, *shown))

    def _pin(self, real: Path, workspace: Path) -> None:
        # Inside a writable workspace, a folder above a mount could be renamed and another put in its place, and the program
        # outside would run that one. A folder that is a mount point itself cannot be renamed.
        for parent in real.parents:
            if parent != workspace and parent.is_relative_to(workspace):
                self._mounts.setdefault(str(parent), ["--bind", str(parent), str(parent)])

    def arguments(self, opener: Opener) -> tuple[list[str], list[int]]:
        """All mounts, the deeper ones later, and the descriptors in them."""
        words, descriptors = list[str](), list[int]()
        ordered = sorted(self._mounts.items(), key=lambda item: (item[0].count("/"), item[0]))
        for place, arguments in ordered:
            if arguments[0] == "--symlink" and self._covered(place):
                continue  # it comes with the folder that it lies in
            if arguments[0] in ("--bind", "--ro-bind") and arguments[1] == place:
                descriptor = opener(Path(place))
                if descriptor is not None:
                    descriptors.append(descriptor)
                    words += [f"{arguments[0]}-fd", str(descriptor), place]
                    continue
            words += arguments
        for place in sorted(self._masks):
            if self._mounts[place][0] == "--perms":
                words += ["--remount-ro", place]
        return words, descriptors


def follow(path: Path) -> tuple[dict[str, str], Path]:
    """The symbolic links met on the way to `path`, each with its target, and the real path."""
    links: dict[str, str] = {}
    real = Path("/")
    rest = list(reversed(path.absolute().parts[1:]))
    while rest:
        name = rest.pop()
        if name == "..":
            real = real.parent
            continue
        here = real / name
        if here.is_symlink() and len(links) < 40:
            target = str(here.readlink())
            links[str(here)] = target
            if target.startswith("/"):
                real = Path("/")
            rest.extend(reversed([part for part in Path(target).parts if part != "/"]))
        else:
            real = here
    return links, real
