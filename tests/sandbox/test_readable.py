"""Files and folders outside of the workspace that a sandbox shows read-only."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from handwork.config import SandboxSettings
from handwork.sandbox.client import SupervisedSandbox
from handwork.sandbox.inside import landlock
from handwork.sandbox.open import open_sandbox
from handwork.sandbox.readable import shown, without_own

from .conftest import Opener


def _shown(path: Path, tmp_path: Path, *hide: Path) -> tuple[bool, str]:
    """Whether a path is shown, and what was told of it."""
    told: list[str] = []
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    kept = shown([path], workspace=workspace, hide=hide, notify=lambda level, text: told.append(text))
    return kept == [path], "; ".join(told)


@pytest.fixture(params=["bwrap", "landlock"])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "landlock" and landlock.version() < 6:
        pytest.skip("this kernel has no Landlock, or an older one")
    return str(request.param)


async def _cat(sandbox: SupervisedSandbox, path: Path) -> bytes:
    return (await sandbox.exec(["cat", str(path)])).output


async def test_a_folder_and_a_file_can_be_read_and_not_be_written(opener: Opener, tmp_path: Path, backend: str) -> None:
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    (folder / "inner").write_text("inner")
    file.write_text("file")
    (tmp_path / "other").write_text("other")
    sandbox = opener(backend, readable=[folder, file])
    assert await _cat(sandbox, folder / "inner") == b"inner"
    assert await _cat(sandbox, file) == b"file"
    assert await sandbox.read(str(file)) == b"file"
    assert await _cat(sandbox, tmp_path / "other") == b""
    for script in (f"echo x > {file}", f"echo x > {folder}/new", f"rm {folder}/inner", f"mv {folder} {folder}2"):
        assert (await sandbox.exec(["bash", "-c", script])).exit_code != 0
    assert (file.read_text(), [inner.name for inner in folder.iterdir()]) == ("file", ["inner"])


async def test_what_a_link_leads_to_is_shown_under_both_names(opener: Opener, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("file")
    (tmp_path / "link").symlink_to("real")
    sandbox = opener("bwrap", readable=[tmp_path / "link"])
    assert await _cat(sandbox, tmp_path / "link" / "file") == b"file"
    assert await _cat(sandbox, tmp_path / "real" / "file") == b"file"


async def test_our_own_folders_stay_hidden_in_what_is_shown(opener: Opener, tmp_path: Path, backend: str) -> None:
    outer = tmp_path / "outer"
    (outer / "own").mkdir(parents=True)
    (outer / "own" / "key").write_text("secret")
    (outer / "file").write_text("file")
    sandbox = opener(backend, readable=[outer], hide=[outer / "own"])
    assert await _cat(sandbox, outer / "own" / "key") == b""
    assert await _cat(sandbox, outer / "file") == (b"file" if backend == "bwrap" else b"")
    told = [text for _, text in opener.notices if "cannot be hidden there" in text]
    assert len(told) == (0 if backend == "bwrap" else 1)


async def test_a_folder_above_the_workspace_leaves_the_workspace_writable(opener: Opener, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    (outer / "work").mkdir(parents=True)
    (outer / "beside").write_text("beside")
    sandbox = opener("bwrap", workspace=outer / "work", readable=[outer])
    assert (await sandbox.exec(["bash", "-c", "cat ../beside > copy && cat copy"])).output == b"beside"
    assert (await sandbox.exec(["bash", "-c", "echo x > ../beside"])).exit_code != 0


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    assert _shown(tmp_path / "none", tmp_path) == (
        False,
        f"{tmp_path}/none is not shown to the sandbox: there is no such file or folder",
    )


@pytest.mark.parametrize(
    "path", ["/", "/etc", "/home", "/tmp", "/var", "/proc/self", "/sys/kernel", "/dev/null", "/run"]
)
def test_folders_of_the_system_and_the_kernel_are_not_shown(tmp_path: Path, path: str) -> None:
    kept, told = _shown(Path(path), tmp_path)
    assert not kept
    assert f"{path} is not shown to the sandbox" in told


def test_the_home_folder_is_not_shown_and_keys_below_it_only_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home" / "ada"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for path in (home, home.parent, tmp_path):
        assert "home folder" in _shown(path, tmp_path)[1]
    assert _shown(home / ".ssh", tmp_path) == (
        True,
        f"{home}/.ssh is shown to all that runs in the sandbox, with the keys that it holds",
    )
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    assert "it holds .ssh" in _shown(home, tmp_path)[1]


def test_a_link_to_what_is_not_shown_is_no_way_to_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    assert "folder of the system" in _shown(tmp_path / "link", tmp_path)[1]


def test_a_link_in_the_workspace_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "link").symlink_to(tmp_path / "outside")
    assert "a link in the workspace" in _shown(tmp_path / "workspace" / "link", tmp_path)[1]


def test_what_lies_in_the_workspace_is_there_already(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "below").mkdir(parents=True)
    assert _shown(tmp_path / "workspace" / "below", tmp_path) == (False, "")


def test_sockets_of_other_programs_are_not_shown(tmp_path: Path) -> None:
    folder = tmp_path / "folder" / "deeper"
    folder.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s"))
        assert "a socket of another program" in _shown(tmp_path / "folder", tmp_path)[1]
        assert "neither a file nor a folder" in _shown(folder / "s", tmp_path)[1]


def test_our_own_folders_and_what_lies_in_them_are_not_shown(tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "deeper").mkdir(parents=True)
    assert "Handwork's own" in _shown(own, tmp_path, own)[1]
    assert "Handwork's own" in _shown(own / "deeper", tmp_path, own)[1]
    assert _shown(tmp_path / "own", tmp_path, own / "deeper") == (True, "")
    told: list[str] = []
    assert without_own([own], hide=[own / "deeper"], notify=lambda level, text: told.append(text)) == []
    assert len(told) == 1


def test_a_remote_sandbox_says_that_it_has_none_of_it(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "data").mkdir()
    open_sandbox(
        SandboxSettings(backend="daytona"),
        workspace=tmp_path / "w",
        artifacts=tmp_path / "a",
        notify=lambda level, text: told.append(text),
        readable=[tmp_path / "data"],
    )
    assert [text for text in told if "sees no files of this machine" in text]
