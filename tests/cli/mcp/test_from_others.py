"""Servers of another program's file: what they want of the user's is agreed to before anything starts or is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import Ended, handwork
from tests.cli.terminal import Terminal

OUTSIDE = {"command": "python3", "args": ["-c", "open('ran', 'w')"], "sandbox": False}
PATHS = {"command": "python3", "args": ["-c", "1"], "paths": ["~/.ssh"], "disabled": False}
KEY = {"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer ${env:MY_KEY}"}}
PLAIN = {"command": "python3", "args": ["-c", "1"]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


async def add(workspace: Path, servers: dict[str, Any], *more: str) -> Ended:
    file = workspace / "theirs.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return await handwork("mcp", "add", "--from", str(file), "--no-test", *more, cwd=workspace)


@pytest.mark.parametrize(
    ("server", "words", "agrees"),
    [
        (OUTSIDE, "starts 1 program OUTSIDE of the sandbox, with your rights, files and network: x", "--no-sandbox"),
        (PATHS, "lets everything in the sandbox read ~/.ssh", "--yes"),
        (KEY, "gives MCP servers your variables: MY_KEY", "--yes"),
    ],
)
async def test_without_a_person_only_an_option_agrees_to_it(
    workspace: Path, home: Path, server: dict[str, Any], words: str, agrees: str
) -> None:
    ended = await add(workspace, {"plain": PLAIN, "x": server})
    assert ended.code == 2
    assert words in ended.err
    assert f"{agrees} agrees to this at once" in ended.err
    assert not (home / "mcp.json").exists()
    ended = await add(workspace, {"plain": PLAIN, "x": server}, agrees)
    assert ended.code == 0, ended.err
    assert set(json.loads((home / "mcp.json").read_text())["mcpServers"]) == {"plain", "x"}


async def test_yes_alone_lets_nothing_out_of_the_sandbox(workspace: Path, home: Path) -> None:
    assert (await add(workspace, {"x": OUTSIDE}, "--yes")).code == 2
    assert not (home / "mcp.json").exists()


async def test_what_wants_nothing_is_taken_over_without_a_question(workspace: Path, home: Path) -> None:
    assert (await add(workspace, {"x": PLAIN})).code == 0


async def test_an_odd_name_keeps_no_other_server_out_and_becomes_one_that_is_said(workspace: Path, home: Path) -> None:
    servers = {"a": PLAIN, "My  Server (new)": PLAIN, "a b": PLAIN, "a/b": PLAIN, "文": PLAIN, "--\x1b[31m": PLAIN}
    ended = await add(workspace, servers)
    assert ended.code == 0, ended.err
    assert "'My  Server (new)' is added as My-Server-new" in ended.err
    assert "'a b' is added as a-b" in ended.err
    assert "'a/b' is left out: it is no name for a server" in ended.err
    assert "'文' is left out: it is no name for a server" in ended.err
    assert "\x1b[31m" not in ended.err
    assert set(json.loads((home / "mcp.json").read_text())["mcpServers"]) == {"a", "My-Server-new", "a-b", "31m"}


async def test_a_server_whose_name_would_be_that_of_another_one_never_takes_its_place(
    workspace: Path, home: Path
) -> None:
    ended = await add(workspace, {"a b": KEY, "a-b": PLAIN})
    assert ended.code == 0, ended.err
    assert json.loads((home / "mcp.json").read_text())["mcpServers"] == {"a-b": PLAIN}
    (workspace / "theirs.json").write_text(json.dumps({"mcpServers": {"a b": {"command": "other"}, "a-b": PLAIN}}))
    ended = await handwork("mcp", "add", "a b", "--from", "theirs.json", "--replace", "--no-test", cwd=workspace)
    assert ended.code == 2
    assert "'a b' is left out" in ended.err
    ended = await add(workspace, {"a b": {"command": "other"}})
    assert ended.code == 2
    assert json.loads((home / "mcp.json").read_text())["mcpServers"] == {"a-b": PLAIN}


async def test_where_no_name_can_be_one_nothing_is_added(workspace: Path, home: Path) -> None:
    ended = await add(workspace, {"文": PLAIN})
    assert ended.code == 2
    assert "Nothing was added: none of the names can be one here" in ended.err
    assert not (home / "mcp.json").exists()


async def test_an_odd_name_that_is_typed_takes_that_server_over(workspace: Path, home: Path) -> None:
    (workspace / "theirs.json").write_text(json.dumps({"mcpServers": {"my one": PLAIN, "a": PLAIN}}))
    ended = await handwork("mcp", "add", "my one", "--from", "theirs.json", "--no-test", cwd=workspace)
    assert ended.code == 0, ended.err
    assert set(json.loads((home / "mcp.json").read_text())["mcpServers"]) == {"my-one"}


@pytest.mark.parametrize(("typed", "code"), [("yes\n", 0), ("\n", 2), ("y\n", 2), ("n\n", 2), ("\x04", 2)])
async def test_a_person_says_yes_with_the_whole_word(workspace: Path, home: Path, typed: str, code: int) -> None:
    (workspace / "theirs.json").write_text(json.dumps({"mcpServers": {"x": OUTSIDE}}))
    terminal = await Terminal.run("mcp", "add", "--from", "theirs.json", "--no-test", cwd=workspace)
    await terminal.expect("Type yes: ")
    terminal.type(typed)
    assert await terminal.end() == code
    assert (home / "mcp.json").exists() is (code == 0)
    assert not (workspace / "ran").exists()


async def test_the_list_says_where_other_programs_have_servers_and_uses_none_of_them(
    workspace: Path, home: Path, tmp_path: Path
) -> None:
    for file in (workspace / ".vscode" / "mcp.json", tmp_path / ".cursor" / "mcp.json"):
        file.parent.mkdir()
        file.write_text(json.dumps({"mcpServers": {"x": OUTSIDE}}))
    ended = await handwork("mcp", "list", cwd=workspace, HOME=str(tmp_path))
    assert ended.code == 0
    shown = "".join(ended.out.split())
    assert f"haveservers,too:{workspace}/.vscode/mcp.json,{tmp_path}/.cursor/mcp.json" in shown
    assert "handwork mcp add --from FILE" in ended.out
    assert "No MCP server is configured." in ended.out


async def test_a_name_that_a_shell_would_read_as_more_is_one_word_in_what_is_to_be_typed(
    workspace: Path, home: Path
) -> None:
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"it; touch gone": {"command": "uvx", "args": ["none"]}}}))
    listed = await handwork("mcp", "list", cwd=workspace)
    assert "handwork mcp add 'it; touch gone' installs it" in listed.out


async def test_servers_of_claude_code_are_found_and_taken_over_those_of_this_folder_too(
    workspace: Path, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / ".claude.json"
    projects = {str(workspace): {"mcpServers": {"here": PLAIN}}, "/elsewhere": {"mcpServers": {"there": PLAIN}}}
    file.write_text(json.dumps({"mcpServers": {"all": PLAIN}, "projects": projects, "history": ["x" * 2_000_000]}))
    listed = await handwork("mcp", "list", cwd=workspace, HOME=str(tmp_path))
    assert f"Other programs have servers, too: {file}" in listed.out
    ended = await handwork("mcp", "add", "--from", str(file), "--no-test", cwd=workspace)
    assert ended.code == 0, ended.err
    assert set(json.loads((home / "mcp.json").read_text())["mcpServers"]) == {"all", "here"}
