"""What `handwork mcp list` says of logins and of installed programs, by files alone."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import handwork
from tests.cli.mcp.registry import registry

from handwork.config import MCPServerSettings
from handwork.mcp.address import address_of
from handwork.mcp.tokens import Grant, TokenStore

URL = "https://tickets.invalid/mcp"


def store(home: Path, name: str = "it", url: str = URL) -> TokenStore:
    return TokenStore(home / "mcp", address_of(name, MCPServerSettings.model_validate({"url": url}), {}))


def grant(*, until: float = 0.0, refresh: str = "") -> Grant:
    return Grant("https://a.invalid", "https://a.invalid/t", "me", URL, "access-1234", refresh, until=until)


def configure(home: Path, **servers: Any) -> None:
    (home / "mcp.json").write_text(json.dumps({"mcpServers": servers}))


async def row(workspace: Path, name: str = "it") -> dict[str, Any]:
    rows = json.loads((await handwork("mcp", "list", "--json", cwd=workspace)).out)
    return next(each for each in rows if each["name"] == name)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with registry(tmp_path_factory.mktemp("registry")) as found:
        yield found


async def test_the_list_says_whether_a_server_has_a_login_and_shows_nothing_of_it(workspace: Path, home: Path) -> None:
    configure(home, it={"url": URL}, other={"url": URL})
    assert (await row(workspace))["login"] == "none"
    await store(home).write(grant())
    found = await row(workspace)
    assert (found["login"], found["state"], found["words"]) == ("kept", "new", "never connected · logged in")
    assert (await row(workspace, "other"))["login"] == "none"  # a login is for one name
    listed = await handwork("mcp", "list", cwd=workspace)
    assert "never connected · logged in" in listed.out
    assert "access-1234" not in listed.out


@pytest.mark.parametrize(("refresh", "login"), [("", "ended"), ("again-1234", "kept")])
async def test_a_login_that_has_ended_and_cannot_be_renewed_is_told_with_the_way_to_a_new_one(
    workspace: Path, home: Path, refresh: str, login: str
) -> None:
    configure(home, it={"url": URL})
    await store(home).write(grant(until=time.time() - 1, refresh=refresh))
    found = await row(workspace)
    assert found["login"] == login
    assert (found["mend"] == "handwork mcp login it") is (login == "ended")
    assert (found["words"] == "its login has ended") is (login == "ended")


async def test_a_server_at_which_nobody_logs_in_has_no_login_to_be_told_of(workspace: Path, home: Path) -> None:
    configure(
        home,
        it={"url": URL, "headers": {"Authorization": "Bearer abcdefgh"}},
        local={"command": "cat"},
        unset={"url": URL, "headers": {"X-Key": "env:NO_SUCH_KEY"}},
        off={"url": URL, "disabled": True},
    )
    assert [(await row(workspace, name))["login"] for name in ("it", "local", "unset", "off")] == [
        None,
        None,
        None,
        "none",
    ]


async def test_a_login_that_cannot_be_read_is_told_of_its_server_and_the_list_goes_on(
    workspace: Path, home: Path
) -> None:
    configure(home, it={"url": URL}, other={"command": "cat"})
    await store(home).write(grant())
    (store(home).folder / "keys.json").write_text("{")
    found = await row(workspace)
    assert found["state"] == "broken"
    assert found["words"].startswith("The login at the MCP server it: The stored keys, ")
    assert found["mend"] == "handwork mcp login it stores it anew"
    assert (await row(workspace, "other"))["state"] == "new"


async def test_the_list_says_which_version_of_a_servers_program_is_installed_and_what_of_it_is_gone(
    workspace: Path, home: Path, places: dict[str, str]
) -> None:
    configure(home, it={"command": "uvx", "args": ["stubbed"]})
    found = await row(workspace)
    assert (found["package"], found["installed"], found["state"]) == ("stubbed", None, "broken")
    added = await handwork("mcp", "add", "it", "--yes", "--no-test", cwd=workspace, **places)
    assert added.code == 0, added.err
    found = await row(workspace)
    assert (found["package"], found["installed"], found["state"]) == ("stubbed", "1.0", "new")
    assert "never connected · 1.0 installed" in (await handwork("mcp", "list", cwd=workspace)).out
    (record,) = (home / "mcp" / "programs").glob("*/installed.json")
    data = json.loads(record.read_text())
    record.write_text(json.dumps({**data, "paths": [*data["paths"], str(home / "gone")]}))
    found = await row(workspace)
    assert (found["state"], found["mend"]) == ("broken", "handwork mcp add it installs it")
    assert found["words"] == f"what is installed needs {home / 'gone'}, which is gone"
    record.write_text(json.dumps({**data, "programs": {"one": ["a"], "two": ["b"]}}))
    assert "has no program named stubbed" in (await row(workspace))["words"]
    shutil.rmtree(record.parent)
    assert (await row(workspace))["words"] == "not installed"
