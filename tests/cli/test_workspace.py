"""The workspace: what cannot be one is named, and one that is not there is made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.cli.command import handwork
from tests.cli.test_run import run

from handwork.cli.workspace import make_folder, real_folder
from handwork.config import Settings
from handwork.errors import ConfigError
from handwork.session import Session

pytestmark = pytest.mark.whole


@pytest.mark.parametrize("name", ["file", "file/below", "circle", "x" * 300, "~no-such-user-here/x", "/proc/nothing/x"])
async def test_what_cannot_be_a_workspace_is_a_usage_error(workspace: Path, home: Path, name: str) -> None:
    (workspace / "file").touch()
    (workspace / "circle").symlink_to("circle")
    ended = await handwork(
        "run", "hi", "--workspace", name, "--model", "openai:any", "--base-url", "http://127.0.0.1:1/v1", cwd=workspace
    )
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("handwork: The workspace ")
    assert "Traceback" not in ended.err
    assert _entries(home) == []


async def test_a_workspace_that_is_not_there_is_made_and_that_is_said(workspace: Path) -> None:
    ended = await run(workspace, ["Done."], "run", "hi", "--workspace", "new/one")
    assert ended.code == 0
    assert f"The workspace {_real(workspace)}/new/one was not there and has been made." in ended.err
    ended = await run(workspace, ["Done."], "run", "hi", "--workspace", "new/one")
    assert "has been made" not in ended.err


async def test_sessions_are_listed_by_the_real_path_of_their_workspace(workspace: Path, tmp_path: Path) -> None:
    await run(workspace, ["Done."], "run", "hi", "--session", "mine")
    (tmp_path / "link").symlink_to(workspace)
    ended = await handwork("sessions", "list", "--workspace", "link", cwd=tmp_path)
    assert "mine" in ended.out


def test_a_current_folder_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="The current folder is gone"):
        real_folder(None)
    os.chdir(tmp_path)
    assert real_folder(tmp_path) == tmp_path.resolve()
    assert make_folder(tmp_path) is False


@pytest.mark.parametrize("words", [("run", "x"), ("run", "x", "-c")])
async def test_a_folder_whose_name_is_no_text_is_two_lines_and_2(workspace: Path, words: tuple[str, ...]) -> None:
    folder = workspace / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    ended = await handwork(*words, cwd=folder)
    assert (ended.code, ended.out) == (2, "")
    what, do = ended.err.splitlines()
    assert what.endswith("caf\ufffd cannot be used: its path is not UTF-8 text")
    assert do.startswith("→ rename it")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        Session.open(Settings(), folder)


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def _real(folder: Path) -> Path:
    return folder.resolve()
