"""`handwork mcp remove` takes away what only that server needed, says each, and leaves what others need."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.cli.command import handwork
from tests.cli.mcp.registry import registry
from tests.mcp import stub
from tests.mcp.login_server import Guarded, guarded, logged_in

from handwork.config import MCPServerSettings
from handwork.mcp.address import address_of
from handwork.mcp.tokens import TokenStore

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with registry(tmp_path_factory.mktemp("registry")) as found:
        yield found


@pytest.fixture
async def server() -> AsyncIterator[Guarded]:
    async with guarded() as one:
        yield one


@pytest.fixture
def script(workspace: Path) -> str:
    file = workspace / "stub.py"
    file.write_bytes(Path(stub.__file__ or "").read_bytes())
    return str(file)


def configure(folder: Path, **servers: Any) -> None:
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


def records(home: Path) -> list[Path]:
    return sorted((home / "mcp" / "approved").glob("*.json"))


def programs(home: Path) -> list[Path]:
    return sorted((home / "mcp" / "programs").glob("*/installed.json"))


def tokens(home: Path, server: Guarded) -> TokenStore:
    return TokenStore(home / "mcp", address_of("docs", MCPServerSettings.model_validate({"url": server.url}), {}))


async def test_what_was_approved_of_it_goes_with_a_server_and_nothing_of_another(
    workspace: Path, home: Path, script: str
) -> None:
    configure(home, **{name: {"command": sys.executable, "args": [script]} for name in ("it", "other")})
    for name in ("it", "other"):
        assert (await handwork("mcp", "test", name, cwd=workspace)).code == 0
    ended = await handwork("mcp", "remove", "it", cwd=workspace)
    assert ended.code == 0
    said = [f"Removed: it (from {home / 'mcp.json'})", "· What was approved of its tools is forgotten"]
    assert ended.out.splitlines() == said
    assert [path.name.startswith("other-") for path in records(home)] == [True]


async def test_a_server_that_left_nothing_is_removed_in_one_line(workspace: Path, home: Path) -> None:
    configure(home, it={"command": "x"})
    ended = await handwork("mcp", "remove", "it", cwd=workspace)
    assert (ended.code, ended.out) == (0, f"Removed: it (from {home / 'mcp.json'})\n")


async def test_what_was_approved_stays_where_the_same_server_stays_under_that_name(
    workspace: Path, home: Path, script: str
) -> None:
    entry = {"command": sys.executable, "args": [script]}
    configure(home, it=entry)
    assert (await handwork("mcp", "test", "it", cwd=workspace)).code == 0
    configure(workspace, it=entry)
    await handwork("trust", cwd=workspace)
    ended = await handwork("mcp", "remove", "it", cwd=workspace)
    assert ended.out == f"Removed: it (from {workspace / 'mcp.json'})\n"
    assert len(records(home)) == 1


async def test_what_was_approved_of_another_server_of_that_name_stays(workspace: Path, home: Path, script: str) -> None:
    configure(home, it={"command": sys.executable, "args": [script]})
    assert (await handwork("mcp", "test", "it", cwd=workspace)).code == 0
    configure(home, it={"command": sys.executable, "args": [script, "--prompts"]})
    ended = await handwork("mcp", "remove", "it", cwd=workspace)
    assert ended.out == f"Removed: it (from {home / 'mcp.json'})\n"
    assert len(records(home)) == 1


async def test_its_login_is_forgotten_and_taken_back_at_the_server(
    workspace: Path, home: Path, server: Guarded
) -> None:
    configure(home, docs={"url": server.url, "headers": {"X-Zone": "env:NO_SUCH_ZONE"}})
    await logged_in(server, home / "mcp")
    assert tokens(home, server).state() == "kept"
    ended = await handwork("mcp", "remove", "docs", cwd=workspace)
    assert (ended.code, ended.out.splitlines()[1:]) == (0, ["· Its login is ended"])
    assert tokens(home, server).state() == "none"
    assert server.authority.access == {}


async def test_a_login_that_cannot_be_taken_back_is_forgotten_and_said_to_be_good_still(
    workspace: Path, home: Path, server: Guarded
) -> None:
    configure(home, docs={"url": server.url})
    await logged_in(server, home / "mcp")

    async def broken(request: web.Request) -> web.Response:
        return web.Response(status=503)

    server.authority.instead["/revoke"] = broken
    ended = await handwork("mcp", "remove", "docs", cwd=workspace)
    assert ended.code == 0
    assert "· Its login is forgotten here; it may still be taken there: " in ended.out
    assert tokens(home, server).state() == "none"


async def test_its_installed_program_goes_unless_another_server_starts_it(
    workspace: Path, home: Path, places: dict[str, str]
) -> None:
    for name, package in (("one", "stubbed"), ("two", "stubbed==1.0")):
        added = await handwork("mcp", "add", name, "--yes", "--no-test", "--", "uvx", package, cwd=workspace, **places)
        assert added.code == 0, added.err
    (record,) = programs(home)
    ended = await handwork("mcp", "remove", "one", cwd=workspace)
    assert (ended.code, len(ended.out.splitlines())) == (0, 1)
    assert programs(home) == [record]
    ended = await handwork("mcp", "remove", "two", cwd=workspace)
    assert ended.out.splitlines()[1:] == [f"· Its program is deleted: stubbed 1.0, in {record.parent}"]
    assert not record.parent.exists()


async def test_with_keep_all_of_it_stays_and_is_named(
    workspace: Path, home: Path, server: Guarded, places: dict[str, str]
) -> None:
    added = await handwork("mcp", "add", "it", "--yes", "--", "uvx", "stubbed", cwd=workspace, **places)
    assert added.code == 0, added.err
    ended = await handwork("mcp", "remove", "it", "--keep", cwd=workspace)
    assert ended.out.splitlines()[1:] == ["Kept: what was approved of its tools, its program stubbed 1.0"]
    assert (len(records(home)), len(programs(home))) == (1, 1)
    configure(home, docs={"url": server.url})
    await logged_in(server, home / "mcp")
    ended = await handwork("mcp", "remove", "docs", "--keep", cwd=workspace)
    assert ended.out.splitlines()[1:] == ["Kept: its login"]
    assert tokens(home, server).state() == "kept"
    assert server.authority.access != {}


async def test_what_cannot_be_taken_away_is_said_and_the_rest_goes(
    workspace: Path, home: Path, places: dict[str, str]
) -> None:
    added = await handwork("mcp", "add", "it", "--yes", "--", "uvx", "stubbed", cwd=workspace, **places)
    assert added.code == 0, added.err
    (record,) = records(home)
    record.unlink()
    record.mkdir()  # which is no file that could be deleted
    ended = await handwork("mcp", "remove", "it", cwd=workspace)
    assert ended.code == 1
    assert f"! what was approved of its tools stays: {record} cannot be deleted" in ended.out
    assert "· Its program is deleted: stubbed 1.0" in ended.out
    assert programs(home) == []
