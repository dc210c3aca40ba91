"""mcp-server-time and mcp-server-git of the package index, inside the sandbox."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from handwork.mcp.connection import Connection
from tests.mcp.real.place import Place, place_in, text_of

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


def _program(name: str) -> str:
    return str(Path(sys.prefix) / "bin" / name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with place_in(tmp_path_factory.mktemp("servers")) as place:
        _repository(place.workspace / "project")
        yield place


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def clock(place: Place) -> Connection:
    return place.connect("time", command=_program("mcp-server-time"), args=["--local-timezone", "Europe/Berlin"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def git(place: Place) -> Connection:
    return place.connect("git", command=_program("mcp-server-git"))


def _repository(folder: Path) -> None:
    folder.mkdir()
    (folder / "readme.txt").write_text("one line\n")
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q", "-b", "trunk"], ["add", "readme.txt"], [*who, "commit", "-qm", "The first one"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)
    (folder / "readme.txt").write_text("one line\nand another\n")


async def test_the_time_server_tells_what_it_offers(clock: Connection) -> None:
    offer = await clock.ready()
    assert [tool.name for tool in offer.tools] == ["convert_time", "get_current_time"]
    assert offer.server
    assert offer.protocol >= "2025-11-25"
    assert all(tool.annotations.get("readOnlyHint") is True for tool in offer.tools)
    assert offer.prompts == ()


async def test_the_time_in_a_place_is_told(clock: Connection) -> None:
    answer = await clock.call("get_current_time", {"timezone": "Asia/Tokyo"})
    assert not answer.failed
    assert "+09:00" in text_of(answer)


async def test_a_time_is_converted(clock: Connection) -> None:
    arguments = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Kolkata"}
    answer = await clock.call("convert_time", arguments)
    assert "Asia/Kolkata" in text_of(answer)


async def test_an_error_of_the_server_is_one_that_the_model_can_read(clock: Connection) -> None:
    answer = await clock.call("get_current_time", {"timezone": "Mars/Olympus_Mons"})
    assert answer.failed
    assert "Mars/Olympus_Mons" in text_of(answer)


async def test_the_git_server_reads_a_repository_of_the_workspace(git: Connection, place: Place) -> None:
    where = str(place.workspace / "project")
    assert "readme.txt" in text_of(await git.call("git_status", {"repo_path": where}))
    assert "+and another" in text_of(await git.call("git_diff_unstaged", {"repo_path": where}))
    assert "The first one" in text_of(await git.call("git_log", {"repo_path": where}))


async def test_the_git_server_changes_a_repository_of_the_workspace(git: Connection, place: Place) -> None:
    where = str(place.workspace / "project")
    added = await git.call("git_add", {"repo_path": where, "files": ["readme.txt"]})
    assert not added.failed, text_of(added)
    assert "readme.txt" in text_of(await git.call("git_diff_staged", {"repo_path": where}))
    made = await git.call("git_create_branch", {"repo_path": where, "branch_name": "side"})
    assert not made.failed, text_of(made)
    assert (place.workspace / "project" / ".git" / "refs" / "heads" / "side").is_file()


async def test_a_repository_outside_of_the_workspace_is_not_there_for_the_git_server(
    git: Connection, tmp_path: Path
) -> None:
    _repository(tmp_path / "elsewhere")
    answer = await git.call("git_log", {"repo_path": str(tmp_path / "elsewhere")})
    assert answer.failed
    assert "The first one" not in text_of(answer)


async def test_servers_that_do_well_cost_no_notice(place: Place, clock: Connection, git: Connection) -> None:
    await clock.ready()
    await git.ready()
    assert place.notices == []
