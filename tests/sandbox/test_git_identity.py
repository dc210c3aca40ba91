"""Who the user is to git is known inside; nothing else of the user's settings is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from handwork.sandbox import git_identity
from handwork.sandbox.git_identity import settings_for
from handwork.sandbox.inside import landlock
from tests.sandbox.conftest import Opener

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
_BACKENDS = ["bwrap", "host", *(["landlock"] if landlock.version() else [])]
_WHOLE = (
    '[user]\n\tname = Me \\"the One\\" here # not this\n\temail = me@example.com\n\tsigningKey = SECRET\n'
    "[core]\n\tsshCommand = evil\n[alias]\n\tx = !evil\n"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(git_identity, "_SYSTEM", home / "none")
    return home


def _read(home: Path, workspace: Path, **environ: str) -> str:
    return settings_for(workspace, {"HOME": str(home), **environ})


def test_name_and_address_are_taken_and_nothing_else(home: Path, tmp_path: Path) -> None:
    (home / ".gitconfig").write_text(_WHOLE)
    assert _read(home, tmp_path) == '[user]\n\tname = "Me \\"the One\\" here"\n\temail = "me@example.com"\n'


def test_files_are_read_in_the_order_of_git(home: Path, tmp_path: Path) -> None:
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/config").write_text("[user]\nname = first\nemail = a@example.com\n")
    (home / ".gitconfig").write_text("[user]\nname = second\n")
    assert _read(home, tmp_path) == '[user]\n\tname = "second"\n\temail = "a@example.com"\n'
    other = tmp_path / "other"
    other.write_text("[user]\nname = third\n")
    assert _read(home, tmp_path, GIT_CONFIG_GLOBAL=str(other)) == '[user]\n\tname = "third"\n'


@pytest.mark.parametrize(
    ("condition", "counts"),
    [
        ('[include]\npath = "more"', True),
        ('[includeIf "gitdir:~/work/"]\npath = ~/more', True),
        ('[includeIf "gitdir/i:~/WORK/"]\npath = more', True),
        ('[includeIf "gitdir:work/"]\npath = more', True),
        ('[includeIf "gitdir:~/other/"]\npath = more', False),
        ('[includeIf "onbranch:main"]\npath = more', False),
        ("[include]\npath = none", False),
    ],
)
def test_what_is_included_counts_where_it_does_for_git(home: Path, condition: str, counts: bool) -> None:
    (home / "more").write_text("[user]\nname = at work\n")
    (home / ".gitconfig").write_text(f"[user]\nname = at home\n{condition}\n")
    assert ("at work" in _read(home, home / "work" / "project")) is counts


@pytest.mark.parametrize("text", ["", "[user", "[user]\nname = \x1b[31mred\n", '[include]\npath = ".gitconfig"\n'])
def test_what_makes_no_sense_gives_no_identity(home: Path, tmp_path: Path, text: str) -> None:
    (home / ".gitconfig").write_text(text)
    assert _read(home, tmp_path) == ""


def test_nothing_is_waited_for_and_nothing_needs_to_be_there(home: Path, tmp_path: Path) -> None:
    assert settings_for(tmp_path, {"HOME": "/dev/null/none"}) == ""
    subprocess.run(["mkfifo", home / ".gitconfig"], check=True)
    assert _read(home, tmp_path) == ""


@needs_git
@pytest.mark.parametrize("backend", _BACKENDS)
async def test_a_commit_inside_is_by_the_user(opener: Opener, home: Path, backend: str) -> None:
    (home / ".gitconfig").write_text(_WHOLE)
    sandbox = opener(backend)
    command = "git init -q . && git commit -q --allow-empty -m one && git log --format='%an <%ae> %cn' && git config --global --list"
    done = await sandbox.exec(["bash", "-c", command])
    said = done.output.decode()
    assert said.splitlines()[0] == 'Me "the One" here <me@example.com> Me "the One" here', (said, done.stderr)
    assert "SECRET" not in said
    assert "evil" not in said


@needs_git
@pytest.mark.parametrize("backend", _BACKENDS)
async def test_the_identity_of_the_repository_goes_first_and_another_can_be_set(
    opener: Opener, home: Path, backend: str
) -> None:
    (home / ".gitconfig").write_text(_WHOLE)
    sandbox = opener(backend)
    command = "git init -q . && git config --global user.email new@example.com && git config user.name Other && git var GIT_AUTHOR_IDENT"
    done = await sandbox.exec(["bash", "-c", command])
    assert done.output.decode().startswith("Other <new@example.com>"), done.stderr
