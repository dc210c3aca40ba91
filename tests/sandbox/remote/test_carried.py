"""A workspace that is sent to another machine and brought back: what arrives, and what of the user's own is never touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handwork.errors import SandboxUnavailable
from handwork.sandbox.guard import Guard
from handwork.sandbox.host import HostSandbox
from handwork.sandbox.remote import carried
from handwork.sandbox.remote.sandbox import RelayedSandbox
from tests.support.daytona_server import DaytonaServer

from .conftest import Opener


@pytest.fixture
def workspace(opener: Opener) -> Path:
    path = opener.base / "place0" / "workspace"
    (path / "below").mkdir(parents=True)
    (path / "below" / "file").write_text("old")
    (path / "script").write_text("#!/bin/sh\necho ran\n")
    (path / "script").chmod(0o755)
    return path


@pytest.fixture
def away(opener: Opener, workspace: Path) -> RelayedSandbox:
    return opener.daytona(carry=True, work_dir="/workspace")


def _bash(script: str) -> list[str]:
    return ["bash", "-c", script]


async def test_files_are_there_from_the_start_and_come_back_after_a_call(away: RelayedSandbox, workspace: Path) -> None:
    assert (await away.exec(_bash("cat below/file; ./script; pwd"))).output == b"oldran\n/workspace\n"
    await away.exec(
        _bash("echo new > below/file; mkdir -p a/b; echo x > a/b/c; chmod 700 a/b/c; rm script; ln -s /etc/passwd link")
    )
    assert await away.after_call() == []
    assert (workspace / "below" / "file").read_text() == "new\n"
    assert (workspace / "a" / "b" / "c").read_text() == "x\n"
    assert (workspace / "a" / "b" / "c").stat().st_mode & 0o777 == 0o700
    assert not (workspace / "script").exists()
    assert not (workspace / "link").is_symlink()


async def test_what_was_done_last_comes_back_when_the_session_ends(away: RelayedSandbox, workspace: Path) -> None:
    await away.exec(_bash("head -c 20000000 /dev/urandom > large; rm -r below"))
    await away.close()
    assert (workspace / "large").stat().st_size == 20_000_000
    assert not (workspace / "below").exists()


async def test_what_the_user_changed_meanwhile_is_kept_and_told(away: RelayedSandbox, workspace: Path) -> None:
    await away.exec(["true"])
    (workspace / "below" / "file").write_text("the user's own")
    (workspace / "script").write_text("the user's, too")
    (workspace / "made").write_text("by the user")
    await away.exec(_bash("echo theirs > below/file; rm script; echo theirs > made"))
    told = await away.after_call()
    assert [(workspace / name).read_text() for name in ("below/file", "script", "made")] == [
        "the user's own", "the user's, too", "by the user",
    ]  # fmt: skip
    assert len(told) == 3
    assert all(name in " ".join(told) for name in ("below/file", "script", "made"))
    assert await away.after_call() == []


async def test_protected_names_and_handworks_own_files_stay_away(opener: Opener, workspace: Path) -> None:
    (workspace / "handwork.toml").write_text("secret")
    for name, text in {
        "HEAD": "ref: refs/heads/main",
        "config": "[core]",
        "objects/x": "",
        "refs/x": "",
        "hooks/sample": "",
    }.items():
        (workspace / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / ".git" / name).write_text(text)
    away = opener.daytona(carry=True, work_dir="/workspace", hide=(workspace / "handwork.toml",))
    script = (
        "cat handwork.toml; mkdir .vscode; echo evil > .vscode/tasks.json; echo evil > .git/hooks/pre-commit; "
        "echo evil >> .git/config; echo x > fine"
    )
    assert b"secret" not in (await away.exec(_bash(script))).output
    told = " ".join(await away.after_call())
    assert (workspace / "fine").read_text() == "x\n"
    assert not (workspace / ".vscode").exists()
    assert not (workspace / ".git" / "hooks" / "pre-commit").exists()
    assert (workspace / ".git" / "config").read_text() == "[core]"
    assert "protected" in told
    assert (workspace / "handwork.toml").read_text() == "secret"


async def test_a_link_out_here_is_neither_sent_nor_written_through(
    away: RelayedSandbox, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (workspace / "way").symlink_to(tmp_path / "outside")
    (workspace / "file").symlink_to(tmp_path / "outside" / "secret")
    result = await away.exec(_bash("cat way/secret file; mkdir way; echo evil > way/secret; echo evil > file"))
    assert b"secret" not in result.output
    assert await away.after_call()
    assert (tmp_path / "outside" / "secret").read_text() == "secret"


async def test_what_cannot_be_listed_there_is_not_taken_for_removed(
    away: RelayedSandbox, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await away.exec(["true"])
    monkeypatch.setattr(carried, "MOST_FILES", 1)  # four are listed
    await away.exec(_bash("rm script; mkdir -p a/b; touch a/1 a/2 a/3 a/4 a/5"))
    assert "Not all files" in " ".join(await away.after_call())
    assert (workspace / "below" / "file").read_text() == "old"
    assert (workspace / "script").exists()
    monkeypatch.undo()
    assert await away.after_call() == []
    assert not (workspace / "script").exists()
    assert (workspace / "below" / "file").exists()
    assert len(list((workspace / "a").iterdir())) == 6


async def test_a_folder_there_that_may_not_be_read_loses_nothing_here(away: RelayedSandbox, workspace: Path) -> None:
    await away.exec(_bash("chmod 000 below"))
    await away.after_call()
    assert (workspace / "below" / "file").read_text() == "old"


async def test_what_was_sent_only_in_part_does_not_come_back(workspace: Path, tmp_path: Path) -> None:
    there = HostSandbox(tmp_path / "there", tmp_path / "artifacts", lambda level, text: None)
    guard = Guard(workspace, tmp_path / "artifacts", lambda level, text: None, holds=False)
    carrying = carried.Carried(workspace, guard, ())
    try:
        await there.write("below/file", b"o")
        assert await carrying.bring_back(there) == []
        assert (workspace / "below" / "file").read_text() == "old"
    finally:
        carrying.close()
        await there.close()


@pytest.mark.parametrize("path", ["../../evil", "/etc/evil", "a//b", "a/../b", "./a", "", "a\0b", 3])
def test_a_path_that_leads_elsewhere_is_none(path: object) -> None:
    assert not carried.is_plain(path)
    assert carried.is_plain("a/b")


async def test_a_workspace_that_is_too_large_is_refused_before_a_machine_is_made(
    daytona: DaytonaServer, away: RelayedSandbox, workspace: Path
) -> None:
    os.truncate(workspace / "script", carried.MOST_BYTES + 1)
    with pytest.raises(SandboxUnavailable, match=r"too large to be sent.*--workspace"):
        await away.exec(["true"])
    assert daytona.made == []
