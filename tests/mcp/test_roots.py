"""The folders that a server is told to work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from handwork.config import MCPServerSettings
from handwork.mcp.roots import roots_of


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ("workspace", "notes/old", "opt/server/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "notes" / "file").touch()
    return tmp_path


def roots(folders: Path, **settings: object) -> list[str]:
    server = MCPServerSettings.model_validate({"command": "server", **settings})
    return [str(place.relative_to(folders)) for place in roots_of(server, str(folders / "workspace"))]


def test_the_workspace_is_the_first_and_mostly_the_only_one(folders: Path) -> None:
    assert roots(folders) == ["workspace"]
    assert roots(folders, args=("--flag", ".", "notes", "/no/such/folder", "a\0b", f"{folders}/notes/file")) == [
        "workspace"
    ]
    assert roots(folders, args=(f"{folders}/workspace",)) == ["workspace"]


def test_a_folder_among_its_arguments_is_one(folders: Path) -> None:
    assert roots(folders, args=("-y", f"{folders}/notes")) == ["workspace", "notes"]


def test_a_folder_that_the_sandbox_shows_it_is_one(folders: Path) -> None:
    assert roots(folders, paths=(f"{folders}/notes",)) == ["workspace", "notes"]
    assert roots(folders, paths=(f"{folders}/notes/file", "~nobody-of-that-name/x")) == ["workspace"]


def test_a_folder_that_is_shown_for_its_program_or_for_a_part_of_it_is_none(folders: Path) -> None:
    assert roots(folders, command=f"{folders}/opt/server/bin/run", paths=(f"{folders}/opt/server",)) == ["workspace"]
    assert roots(folders, args=(f"{folders}/opt/server/main.py",), paths=(f"{folders}/opt/server",)) == ["workspace"]
    part = {"args": (f"{folders}/notes/old",), "paths": (f"{folders}/notes",)}
    assert roots(folders, **part) == ["workspace", "notes/old"]
