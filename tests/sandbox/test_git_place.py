"""A workspace whose git folder lies outside of it is announced: to the user with what to do, to the model with why git fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from handwork.sandbox.git_place import repository_outside
from tests.sandbox.conftest import Opener


def _repository(folder: Path) -> Path:
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return folder


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return _repository(tmp_path / "home" / "project")


def test_a_folder_of_a_repository_is_named_with_its_root(base: Path) -> None:
    (base / "a/b").mkdir(parents=True)
    assert f"start in {base}." in repository_outside(base / "a/b")


def test_a_work_tree_is_named_with_its_git_folder(base: Path) -> None:
    tree = base.parent / "tree"
    tree.mkdir()
    (base / ".git/worktrees/tree").mkdir(parents=True)
    (base / ".git/worktrees/tree/HEAD").write_text("ref: refs/heads/tree\n")
    (tree / ".git").write_text(f"gitdir: {base}/.git/worktrees/tree\n")
    assert f"is {base}/.git/worktrees/tree," in repository_outside(tree)
    other = base.parent / "other"
    other.mkdir()
    (other / ".git").symlink_to("../project/.git")
    assert f"is {base}/.git," in repository_outside(other)


def test_where_git_works_or_there_is_none_nothing_is_said(base: Path) -> None:
    assert repository_outside(base) == ""
    assert repository_outside(base / ".git") == ""
    (base.parent / ".git").mkdir()  # settings in the home folder that are kept in git
    plain = base.parent / "plain"
    (plain / "sub").mkdir(parents=True)
    assert repository_outside(plain) == ""
    (plain / ".git").write_text("gitdir: kept\n")
    assert repository_outside(plain) == ""
    for pointer in ("a\0b", "a" * 5000, "..", "/dev/zero", ""):
        (plain / ".git").write_text(f"gitdir: {pointer}\n")
        assert repository_outside(plain) == ""
    (plain / ".git").chmod(0)
    assert repository_outside(plain) == ""


async def test_it_is_said_once_at_the_start(opener: Opener, base: Path) -> None:
    (base / "part").mkdir()
    sandbox = opener("bwrap", workspace=base / "part")
    assert (await sandbox.exec(["bash", "-c", "exit 3"])).exit_code == 3
    assert "git does not work" in " ".join(await sandbox.after_call())
    await sandbox.exec(["true"])
    assert await sandbox.after_call() == []
    assert [text for level, text in opener.notices if level == "info"] == [repository_outside(base / "part")]
