"""@modelcontextprotocol/server-filesystem: its allowed folder is the workspace, and the sandbox holds it to that."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from handwork.mcp.connection import Connection
from tests.mcp.real.place import Place, pictures_of, place_in, text_of
from tests.support.node import MODULES, node, script
from tests.support.pictures import png

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    async with place_in(tmp_path_factory.mktemp("files"), readable=[MODULES]) as place:
        (place.workspace / "notes.txt").write_text("first\nsecond\nthird\n")
        (place.workspace / "dot.png").write_bytes(png())
        yield place


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def files(place: Place) -> Connection:
    return place.connect("files", command=node(), args=[script("filesystem"), str(place.workspace)])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def everywhere(place: Place) -> Connection:
    """Told that it may touch all of the machine: nothing but the sandbox holds it."""
    return place.connect("everywhere", root="/", command=node(), args=[script("filesystem"), "/"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rooted(place: Place) -> Connection:
    """Started for another folder than the workspace."""
    return place.connect("rooted", command=node(), args=[script("filesystem"), "/usr"])


async def test_it_offers_tools_with_hints_that_say_which_only_read(files: Connection) -> None:
    tools = {tool.name: tool.annotations for tool in (await files.ready()).tools}
    assert tools["read_text_file"]["readOnlyHint"] is True
    assert tools["write_file"]["readOnlyHint"] is False
    assert tools["write_file"]["destructiveHint"] is True
    assert len(tools) == 14


async def test_its_folder_is_the_workspace(files: Connection, place: Place) -> None:
    answer = await files.call("list_allowed_directories", {})
    assert str(place.workspace) in text_of(answer)


async def test_it_reads_lists_and_writes_in_the_workspace(files: Connection, place: Place) -> None:
    here = place.workspace
    assert text_of(await files.call("read_text_file", {"path": str(here / "notes.txt"), "head": 1})) == "first"
    assert "[FILE] notes.txt" in text_of(await files.call("list_directory", {"path": str(here)}))
    written = await files.call("write_file", {"path": str(here / "new.txt"), "content": "made by a server\n"})
    assert not written.failed, text_of(written)
    assert (here / "new.txt").read_text() == "made by a server\n"


async def test_it_changes_a_line_and_shows_the_difference(files: Connection, place: Place) -> None:
    (place.workspace / "edit.txt").write_text("old\n")
    change = [{"oldText": "old", "newText": "new"}]
    answer = await files.call("edit_file", {"path": str(place.workspace / "edit.txt"), "edits": change})
    assert "+new" in text_of(answer)
    assert (place.workspace / "edit.txt").read_text() == "new\n"


async def test_a_picture_comes_as_one(files: Connection, place: Place) -> None:
    answer = await files.call("read_media_file", {"path": str(place.workspace / "dot.png")})
    (picture,) = pictures_of(answer)
    assert picture.media_type == "image/png"


async def test_the_server_refuses_what_lies_outside_of_its_folder(files: Connection) -> None:
    answer = await files.call("read_text_file", {"path": "/etc/hostname"})
    assert answer.failed
    assert "outside allowed directories" in text_of(answer)


async def test_the_sandbox_refuses_what_the_server_would_read(everywhere: Connection, tmp_path: Path) -> None:
    (secret := tmp_path / "secret").write_text("of the user")
    for path in ("/etc/shadow", str(secret)):
        answer = await everywhere.call("read_text_file", {"path": path})
        assert answer.failed


async def test_the_sandbox_refuses_what_the_server_would_write(everywhere: Connection, tmp_path: Path) -> None:
    answer = await everywhere.call("write_file", {"path": str(tmp_path / "planted"), "content": "x"})
    assert answer.failed
    assert not (tmp_path / "planted").exists()


async def test_the_roots_that_it_learns_of_us_are_the_workspace_and_the_folders_of_its_entry(
    rooted: Connection, place: Place
) -> None:
    """It takes the roots that a client names for its folders, in the place of those that it was started with."""
    answer = await rooted.call("list_allowed_directories", {})
    assert text_of(answer).splitlines()[1:] == [str(place.workspace), "/usr"]
