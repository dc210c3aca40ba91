"""Whether a workspace belongs to a repository that a sandbox does not show, and what to say of it."""

from __future__ import annotations

import os
from pathlib import Path

_LARGEST = 4096


def repository_outside(workspace: Path) -> str:
    """A sentence for people if the git folder that counts in a workspace lies outside of it; '' otherwise."""
    own = workspace / ".git"
    if os.path.lexists(own):
        folder = _led_to(own)
        if folder is None or folder.is_relative_to(workspace) or not (folder / "HEAD").exists():
            return ""
        return (
            f"The git folder of the workspace is {folder}, which the sandbox does not show: git does not work there. "
            "For git, start in a folder that holds both, or in a clone."
        )
    if all((workspace / name).exists() for name in ("HEAD", "objects", "refs")):
        return ""
    home = os.path.realpath(os.environ.get("HOME") or "/")
    for parent in workspace.parents:
        # Who keeps the settings in the home folder in git does not mean these by a project.
        if str(parent) != home and (parent / ".git").exists():
            return (
                f"The workspace lies in the repository {parent}, of which the sandbox shows the workspace alone: git does not work "
                f"there. For git, start in {parent}."
            )
    return ""


def _led_to(place: Path) -> Path | None:
    """The git folder that a link or file stands for; None for a folder, and what cannot be read."""
    try:
        if place.is_symlink():
            return Path(os.path.realpath(place))
        if not place.is_file():
            return None
        with place.open("rb") as file:
            said = file.read(_LARGEST).decode(errors="replace")
        folder = Path(os.path.realpath(place.parent / said.removeprefix("gitdir:").strip()))
        folder.lstat()
    except (OSError, ValueError):  # whoever wrote it need not mean well
        return None
    return folder
