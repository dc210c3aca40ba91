"""A program that met a bound of the sandbox is explained to the model, and told what to do instead."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest

from handwork.tool.bash import Bash
from handwork.tool.python_execute import PythonExecute
from handwork.tool.sandbox_hint import sandbox_hints
from tests.tool.conftest import Place, open_place

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")
_INTO_PACKAGES = "import sysconfig; open(sysconfig.get_path('purelib') + '/x.py', 'w')"


@pytest.fixture
async def bwrap() -> AsyncIterator[Place]:
    async with open_place("bwrap") as place:
        yield place


async def _bash(place: Place, command: str) -> str:
    return str((await Bash().execute(context=place.context(), command=command)).system)


async def test_whoever_installs_into_this_python_is_told_where_to(bwrap: Place) -> None:
    assert "python3 -m venv" in await _bash(bwrap, f'python3 -c "{_INTO_PACKAGES}" | tail -1')
    result = await PythonExecute().execute(context=bwrap.context(), code=_INTO_PACKAGES)
    assert "--target" in str(result.system)


@needs_git
async def test_whoever_changes_the_settings_of_a_repository_is_told_the_other_ways(bwrap: Place) -> None:
    git = bwrap.workspace / ".git"
    for name in ("objects", "refs/heads"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
    assert "git -c name=value" in await _bash(bwrap, "git config user.name Me")
    command = "git config --global user.name Me && git config --global user.email me@example.com && "
    done = await Bash().execute(
        context=bwrap.context(), command=command + "git commit -q --allow-empty -m x && git log --format=%an"
    )
    assert done.output.strip() == "Me"


async def test_a_file_that_grew_to_the_limit_is_explained(bwrap: Place) -> None:
    assert "file_limit" in await _bash(bwrap, "(ulimit -f 1; head -c 5000 /dev/zero > f)")
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9)); open('g', 'w', buffering=1).write('x' * 99 + '\\n')"
    assert "file_limit" in await _bash(bwrap, f'python3 -c "{code}"')


@pytest.mark.parametrize(
    "output",
    [
        "",
        "error: could not write config file /home/agent/.gitconfig: Read-only file system",
        "cp: /usr/share/x: Read-only file system",
        "see .git/config and site-packages",
        "413 Request Entity: File too large to send",
    ],
)
def test_other_words_are_not_explained(output: str) -> None:
    assert sandbox_hints(output) == []
