"""A path that [sandbox] writable may name: one of the workspace, whichever that is."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def _within(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith(("/", "~")) or ".." in parts or "\0" in path:
        raise PydanticCustomError(
            "writable", "{path} is no path in a workspace, such as .vscode or .git/hooks", {"path": repr(path)}
        )
    return path


FreePath = Annotated[str, AfterValidator(_within)]
