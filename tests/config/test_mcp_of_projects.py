"""A file that keeps the servers of folders apart and much besides, as Claude Code's: those of one folder are read with its others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handwork.config.mcp_elsewhere import files_of_others
from handwork.config.mcp_file import read_servers
from handwork.errors import ConfigError

HERE = Path("/their/here")


def write(folder: Path, top: Any = None, here: Any = None, **more: Any) -> Path:
    file = folder / ".claude.json"
    projects = {
        "/their/other": {"mcpServers": {"theirs": {"command": "x"}}},
        str(HERE): {"history": [], "mcpServers": here or {}},
    }
    data = {"numStartups": 3, **more, **({"mcpServers": top} if top is not None else {}), "projects": projects}
    file.write_text(json.dumps(data, indent=1))
    return file


def commands(file: Path, folder: Path | None = HERE) -> dict[str, str]:
    return {name: server.command for name, server in read_servers(file, folder=folder).items()}


def test_servers_for_everywhere_and_those_of_the_folder_are_read_and_of_one_name_that_of_the_folder(
    tmp_path: Path,
) -> None:
    file = write(
        tmp_path, {"a": {"command": "1"}, "b": {"command": "2"}}, {"b": {"command": "3"}, "c": {"command": "4"}}
    )
    assert commands(file) == {"a": "1", "b": "3", "c": "4"}
    assert commands(file, Path("/their/other")) == {"a": "1", "b": "2", "theirs": "x"}
    assert commands(file, Path("/their/new")) == {"a": "1", "b": "2"}
    assert commands(file, None) == {"a": "1", "b": "2"}


def test_a_file_with_servers_of_the_folder_alone_is_read(tmp_path: Path) -> None:
    file = write(tmp_path, None, {"c": {"command": "4"}})
    assert commands(file) == {"c": "4"}
    assert commands(file, Path("/their/new")) == {}


def test_a_mistake_is_told_on_its_line_in_either_place(tmp_path: Path) -> None:
    for top, here in (({"a": {"command": "1", "args": 7}}, None), ({}, {"a": {"command": "1", "args": 7}})):
        file = write(tmp_path, top, here)
        line = file.read_text().splitlines().index(next(row for row in file.read_text().splitlines() if "7" in row))
        with pytest.raises(ConfigError, match=f"line {line + 1}: "):
            commands(file)


@pytest.mark.parametrize("bad", [[], {"a": 1}, {" ": {"command": "x"}}])
def test_what_are_no_servers_is_told_of_the_folder_too(tmp_path: Path, bad: Any) -> None:
    with pytest.raises(ConfigError, match=r"line \d+: "):
        commands(write(tmp_path, {}, bad or [1]))


def test_what_stands_beside_may_be_large_deep_and_cut_in_a_characters_middle(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    file = write(tmp_path, {"a": {"command": "1"}}, None, history=["x" * 9_000_000], cut="\ud83d", deep=deep)
    assert commands(file) == {"a": "1"}
    with pytest.raises(ConfigError, match="half of a character"):
        commands(write(tmp_path, {"a": {"command": "\ud83d"}}))


def test_a_file_of_more_than_16_mb_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="larger than 16,000,000 bytes"):
        commands(write(tmp_path, {"a": {"command": "1"}}, history=["x" * 16_000_000]))


@pytest.mark.parametrize(
    ("top", "here", "named"),
    [
        ({}, {}, False),
        (None, {}, False),
        ({"a": {"command": "1"}}, {}, True),
        ({}, {"a": {"command": "1"}}, True),
    ],
)
def test_the_file_is_found_where_it_has_a_server_for_this_folder(
    tmp_path: Path, top: Any, here: Any, named: bool
) -> None:
    file = write(tmp_path, top, here, history=["x" * 2_000_000])
    assert list(files_of_others(HERE, tmp_path)) == ([file] if named else [])


def test_a_file_that_is_none_of_these_is_not_found(tmp_path: Path) -> None:
    for text in (
        '{"mcpServers": {"a"',
        '[{"mcpServers": {"a": {}}}]',
        '{"projects": 1, "x": {"mcpServers": {"a": 1}}}',
    ):
        (tmp_path / ".claude.json").write_text(text)
        assert list(files_of_others(HERE, tmp_path)) == []
