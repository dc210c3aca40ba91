"""`handwork mcp add` installs what a server's runner would fetch: after asking, into our folder, in an exact version."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import Ended, handwork
from tests.cli.mcp.registry import registry

pytestmark = pytest.mark.whole

NPM = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with registry(tmp_path_factory.mktemp("registry")) as found:
        yield found


def args_of(home: Path, name: str) -> Any:
    return json.loads((home / "mcp.json").read_text())["mcpServers"][name]["args"]


def inside(home: Path, pattern: str) -> list[Path]:
    return sorted((home / "mcp" / "programs").glob(pattern))


async def add(workspace: Path, places: dict[str, str], *arguments: str) -> Ended:
    return await handwork("mcp", "add", *arguments, cwd=workspace, **places)


async def test_nobody_is_asked_without_a_terminal_so_nothing_is_installed_or_written(
    workspace: Path, home: Path, places: dict[str, str]
) -> None:
    ended = await add(workspace, places, "it", "--", "uvx", "stubbed")
    assert ended.code == 2
    assert "stubbed 1.0 has to be installed before the server can start in the sandbox" in ended.err
    assert "from PyPI (127.0.0.1); nothing that they bring along is run for that" in ended.err
    assert ended.err.splitlines()[-1] == "→ nobody is there to be asked: --yes says that it may be installed"
    assert not (home / "mcp.json").exists()
    assert inside(home, "*") == []


async def test_a_python_package_is_installed_pinned_and_runs_in_the_sandbox(
    workspace: Path, home: Path, places: dict[str, str]
) -> None:
    ended = await add(workspace, places, "it", "--yes", "--", "uvx", "stubbed", "--name", "clock")
    assert ended.code == 0, ended.err
    assert args_of(home, "it") == ["stubbed@1.0", "--name", "clock"]
    assert ended.out.startswith("it · clock 1.0 · ")
    assert "2 tools" in ended.out
    listed = await handwork("mcp", "list", cwd=workspace)  # without the registry
    assert "uvx stubbed@1.0 --name clock" in listed.out
    assert "2 tools, approved" in listed.out
    assert "connected in" in (await handwork("mcp", "test", "it", cwd=workspace)).out


async def test_a_package_that_would_run_code_to_be_installed_needs_a_word_for_that(
    workspace: Path, home: Path, places: dict[str, str], tmp_path: Path
) -> None:
    marked = {**places, "STUB_MARK": str(tmp_path / "mark")}
    ended = await add(workspace, marked, "it", "--yes", "--", "uvx", "sourced")
    assert ended.code == 2
    assert "pip failed" in ended.err
    assert "needs --scripts" in ended.err.splitlines()[-1]
    assert inside(home, "*") == []
    assert not (tmp_path / "mark").exists()
    unasked = await add(workspace, marked, "it", "--scripts", "--", "uvx", "sourced")
    assert (unasked.code, (tmp_path / "mark").exists()) == (2, False), "to look at it would run its code already"
    assert "sourced may run code of its own as soon as it is looked at" in unasked.err
    await add(workspace, marked, "it", "--yes", "--scripts", "--", "uvx", "sourced")
    assert (tmp_path / "mark").exists()


async def test_npm_gets_the_login_that_its_own_settings_name_and_no_key_of_ours(
    workspace: Path, tmp_path: Path
) -> None:
    npm, told = tmp_path / "npm", tmp_path / "told"
    npm.write_text(f"#!/bin/sh\nenv > {told}\nexit 1\n")
    npm.chmod(0o755)
    theirs, ours = {"NPM_TOKEN": "for-the-registry", "NPM_CONFIG_X": "1"}, {"OPENAI_API_KEY": "for-the-model"}
    path = f"{tmp_path}:{os.environ['PATH']}"
    await add(workspace, {**theirs, **ours, "PATH": path}, "it", "--yes", "--", "npx", "some")
    rows = told.read_text().splitlines()
    assert {f"{name}={value}" for name, value in theirs.items()} <= set(rows)
    assert "for-the-model" not in told.read_text()


async def test_a_package_that_is_unknown_is_said_and_nothing_is_left(
    workspace: Path, home: Path, places: dict[str, str]
) -> None:
    ended = await add(workspace, places, "it", "--yes", "--", "uvx", "no-such-package")
    assert ended.code == 2
    assert "pip failed" in ended.err
    assert "→ Is the name right? And one that comes as source only needs --scripts" in ended.err
    assert not (home / "mcp.json").exists()
    assert inside(home, "*") == []


@NPM
async def test_an_npm_package_that_is_unknown_is_asked_about_by_its_name(
    workspace: Path, home: Path, places: dict[str, str]
) -> None:
    ended = await add(workspace, places, "it", "--yes", "--", "npx", "no-such-package")
    assert ended.code == 2
    assert "→ Is the name right?" in ended.err
    assert inside(home, "*") == []


@NPM
async def test_an_npm_package_is_installed_pinned_without_its_scripts_and_runs_in_the_sandbox(
    workspace: Path, home: Path, places: dict[str, str]
) -> None:
    (workspace / ".npmrc").write_text("registry=http://127.0.0.1:9/\n")  # the workspace has no say
    ended = await add(workspace, places, "it", "--yes", "--", "npx", "-y", "@tiny/server-hello")
    assert ended.code == 0, ended.err
    assert args_of(home, "it") == ["-y", "@tiny/server-hello@1.2.3"]
    assert "mcp_it_hello" in ended.out
    (folder,) = inside(home, "*")
    assert (folder / "node_modules" / "@tiny" / "server-hello" / "index.js").is_file()
    assert not list(folder.rglob("was-run"))


async def test_an_entry_of_another_program_works_after_one_add_by_name_and_stays_as_it_is(
    workspace: Path, home: Path, places: dict[str, str]
) -> None:
    text = '{"mcpServers": {"it":   {"command": "uvx", "args": ["stubbed"]}}}'
    (home / "mcp.json").write_text(text)
    before = await handwork("mcp", "test", "it", cwd=workspace)
    assert before.code == 1
    assert "stubbed (PyPI) is not installed" in before.out
    assert "→ handwork mcp add it installs it" in before.out
    ended = await add(workspace, places, "it", "--yes")
    assert ended.code == 0, ended.err
    assert (home / "mcp.json").read_text() == text
    assert (await handwork("mcp", "test", "it", cwd=workspace)).code == 0
