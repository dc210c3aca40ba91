"""Files in which other programs keep their servers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handwork.config.mcp_elsewhere import files_of_others
from tests.config.places import Places


@pytest.mark.parametrize(
    "name", [".vscode/mcp.json", ".cursor/mcp.json", ".gemini/settings.json", ".zed/settings.json"]
)
def test_a_file_of_another_program_is_found_and_not_read_as_ours(places: Places, tmp_path: Path, name: str) -> None:
    file = places.in_workspace(name, '{"mcpServers": {"x": {"command": "evil"}}}')
    assert list(files_of_others(places.workspace, tmp_path)) == [file]
    settings = places.load()
    assert (settings.mcp.servers, settings.notices, settings.unread) == ({}, (), ())


def test_what_speaks_of_no_servers_or_is_no_file_is_none(places: Places, tmp_path: Path) -> None:
    places.in_workspace(".gemini/settings.json", '{"theme": "dark"}')
    places.in_workspace(".cursor/mcp.json/x")
    (places.workspace / ".vscode").mkdir()
    os.mkfifo(places.workspace / ".vscode" / "mcp.json")
    places.in_workspace("opencode.json", '{"mcp": {}, "x": "' + "y" * 1_000_000 + '"}')
    assert list(files_of_others(places.workspace, tmp_path)) == []


def test_those_of_the_user_are_found_too(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{"mcpServers": {}}')
    assert list(files_of_others(tmp_path / "nowhere", tmp_path)) == [file]
