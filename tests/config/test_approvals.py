from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handwork.config.approvals import Approvals
from handwork.errors import ConfigError


@pytest.fixture
def approvals(tmp_path: Path) -> Approvals:
    return Approvals(tmp_path / "config")


def test_rules_are_kept_by_the_real_path_of_the_folder(approvals: Approvals, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (tmp_path / "link").symlink_to(here)
    approvals.add(here, ["allow run make test", "allow run ls"])
    approvals.add(tmp_path / "link", ["allow run ls", "allow run 'a b' '\"' \\\\"])
    assert approvals.rules(here) == ("allow run make test", "allow run ls", "allow run 'a b' '\"' \\\\")
    assert approvals.rules(there) == ()


def test_the_file_is_for_its_user_alone_and_says_what_it_is(approvals: Approvals, tmp_path: Path) -> None:
    approvals.add(tmp_path, ["allow run ls"])
    assert approvals.path.stat().st_mode & 0o777 == 0o600
    text = approvals.path.read_text()
    assert text.startswith("# What you answered with “always”")
    assert f'"{tmp_path}" = [\n  "allow run ls",\n]' in text


def test_rules_are_taken_back_one_by_one_or_all(approvals: Approvals, tmp_path: Path) -> None:
    approvals.add(tmp_path, ["allow run a", "allow run b", "allow run c"])
    assert approvals.forget(tmp_path, ["allow run b", "allow run d"]) == ("allow run b",)
    assert approvals.forget(tmp_path) == ("allow run a", "allow run c")
    assert approvals.forget(tmp_path) == ()
    assert approvals.workspaces() == frozenset()


def test_what_holds_without_a_sandbox_is_kept_apart(approvals: Approvals, tmp_path: Path) -> None:
    approvals.add(tmp_path, ["allow run a", "allow run b"])
    approvals.add(tmp_path, ["allow run b", "allow run c"], anywhere=True)
    assert approvals.rules(tmp_path) == ("allow run a", "allow run b")
    assert approvals.rules(tmp_path, anywhere=True) == ("allow run b", "allow run c")
    assert approvals.forget(tmp_path, ["allow run b"]) == ("allow run b",)
    assert approvals.rules(tmp_path, anywhere=True) == ("allow run c",)
    assert approvals.workspaces() == {str(tmp_path)}


def test_no_file_allows_nothing(approvals: Approvals, tmp_path: Path) -> None:
    assert approvals.rules(tmp_path) == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[workspaces\n", "it is no valid TOML"),
        ("other = 1\n", "it holds something else"),
        ("workspaces = 1\n", "it holds something else"),
        ('[workspaces]\n"/x" = "allow run ls"\n', "what stands for /x is no list of rules"),
        ('[workspaces]\n"/x" = ["allow rum ls"]\n', "has rum where its kind belongs – did you mean run?"),
        ('[workspaces]\n"/x" = ["deny run ls"]\n', "does not allow"),
        ("a." * 5_000 + "a = 1\n", "it "),
    ],
)
def test_a_damaged_file_is_an_error_that_says_what_to_do(
    approvals: Approvals, tmp_path: Path, text: str, why: str
) -> None:
    approvals.path.parent.mkdir()
    approvals.path.write_text(text)
    approvals.path.chmod(0o600)
    with pytest.raises(ConfigError) as error:
        approvals.rules(tmp_path)
    assert str(approvals.path) in error.value.what
    assert why in error.value.what
    assert "delete it and be asked again" in error.value.hint
    with pytest.raises(ConfigError):
        approvals.add(tmp_path, ["allow run ls"])
    assert approvals.path.read_text() == text


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_change_allows_nothing(approvals: Approvals, tmp_path: Path, mode: int) -> None:
    approvals.add(tmp_path, ["allow run ls"])
    approvals.path.chmod(mode)
    with pytest.raises(ConfigError, match="may be changed by others"):
        approvals.rules(tmp_path)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_an_error(approvals: Approvals, tmp_path: Path, make: object) -> None:
    approvals.path.parent.mkdir()
    assert callable(make)
    make(approvals.path)
    with pytest.raises(ConfigError, match="cannot be read"):
        approvals.rules(tmp_path)


_ADD = """
import sys; from pathlib import Path; from handwork.config.approvals import Approvals
for number in range(20):
    Approvals(Path(sys.argv[1])).add(Path(sys.argv[2]), [f"allow run {sys.argv[3]} {number}"])
"""


def test_two_programs_at_once_lose_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    lines = [[sys.executable, "-c", _ADD, str(folder), str(tmp_path), name] for name in ("a", "b")]
    programs = [subprocess.Popen(line) for line in lines]
    assert [program.wait() for program in programs] == [0, 0]
    assert len(Approvals(folder).rules(tmp_path)) == 40
    assert [each.name for each in folder.iterdir()] == ["approvals.toml"]
