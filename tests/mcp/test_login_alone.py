"""A program that logs in without a person: as the client that its entry names, whenever the server wants it, and nowhere else."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from handwork.config import MCPServerSettings
from handwork.errors import MCPServerError, MCPUnavailable
from handwork.mcp.address import Address, address_of
from handwork.mcp.content import Text
from handwork.mcp.login import log_out
from handwork.mcp.login_alone import log_in_alone
from handwork.mcp.tokens import TokenStore
from tests.mcp.http_servers import around, connected
from tests.mcp.login_server import Guarded, Visitor, guarded, logged_in

ENVIRON = {"ROBOT": "hush"}
ALONE = {"client_id": "robot", "client_secret": "env:ROBOT", "grant": "client_credentials"}


@pytest.fixture
async def server() -> AsyncIterator[Guarded]:
    async with guarded() as one:
        one.authority.changes = {
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "grant_types_supported": ["client_credentials"],
            "authorization_endpoint": None,
            "code_challenge_methods_supported": None,
            "response_types_supported": None,
            "scopes_supported": ["read", "offline_access"],
        }
        yield one


def place(server: Guarded) -> Address:
    return address_of("docs", MCPServerSettings.model_validate({"url": server.url}), {})


async def echo(server: Guarded, home: Path, hidden: list[str] | None = None, **oauth: Any) -> None:
    hide = (hidden if hidden is not None else []).extend
    there = around(home, environ=ENVIRON, hide=hide)
    async with connected(server.url, home, around_it=there, oauth={**ALONE, **oauth}) as connection:
        assert (await connection.call("echo", {"text": "in"})).parts == (Text("in"),)


def written(home: Path) -> str:
    return "".join(file.read_text() for file in home.rglob("*") if file.is_file())


def asked(server: Guarded) -> list[dict[str, str]]:
    return server.authority.asked("/token")


async def test_a_run_logs_in_by_itself_and_the_next_one_uses_what_is_kept(server: Guarded, tmp_path: Path) -> None:
    hidden: list[str] = []
    await echo(server, tmp_path, hidden)
    await echo(server, tmp_path)
    assert asked(server) == [{"grant_type": "client_credentials", "resource": server.url}]
    grant = await TokenStore(tmp_path, place(server)).read()
    assert grant is not None
    assert {"hush", grant.access_token} <= set(hidden)
    assert "hush" not in written(tmp_path)


async def test_a_token_that_has_ended_is_asked_for_anew(server: Guarded, tmp_path: Path) -> None:
    await echo(server, tmp_path, scope="read")
    store = TokenStore(tmp_path, place(server))
    grant = await store.read()
    assert grant is not None
    await store.write(replace(grant, until=time.time() - 1))
    await echo(server, tmp_path, scope="read")
    server.authority.access.clear()  # taken back before its end
    await echo(server, tmp_path, scope="read")
    assert [form.get("scope") for form in asked(server)] == ["read"] * 3


async def test_mcp_login_needs_no_browser_and_logout_takes_the_token_back(server: Guarded, tmp_path: Path) -> None:
    visitor = Visitor()
    assert await logged_in(server, tmp_path, visitor, settings={"oauth": ALONE}, environ=ENVIRON, scope="read")
    assert visitor.sent == []
    assert asked(server)[0]["scope"] == "read"
    settings = MCPServerSettings.model_validate({"url": server.url, "oauth": ALONE})
    assert await log_out("docs", settings, home=tmp_path, environ=ENVIRON) == (True, "")
    assert server.authority.access == {}


async def test_another_client_in_the_entry_does_not_use_the_login_of_the_last(server: Guarded, tmp_path: Path) -> None:
    await echo(server, tmp_path)
    server.authority.program = "second:hush"
    await echo(server, tmp_path, client_id="second")
    assert len(asked(server)) == 2


@pytest.mark.parametrize(
    ("oauth", "words"),
    [
        ({"client_secret": "wrong"}, "Logging in without a person at the MCP server docs was refused: invalid_client"),
        ({"client_secret": "env:NOT_SET"}, "is to be in NOT_SET, which is not set"),
    ],
)
async def test_a_client_that_is_not_taken_is_told(
    server: Guarded, tmp_path: Path, oauth: dict[str, str], words: str
) -> None:
    with pytest.raises(MCPServerError, match=words):
        await echo(server, tmp_path, **oauth)
    assert len(asked(server)) <= 1


async def test_the_secret_goes_to_nobody_but_the_issuer_that_the_entry_names(server: Guarded, tmp_path: Path) -> None:
    await echo(server, tmp_path, issuer=server.authority.origin)
    with pytest.raises(MCPUnavailable, match="its entry names https://logins.example"):
        await echo(server, tmp_path / "other", issuer="https://logins.example")
    with pytest.raises(MCPUnavailable, match="its entry names https://logins.example"):
        await echo(server, tmp_path, issuer="https://logins.example")  # the login that is kept is of another
    assert len(asked(server)) == 1


async def test_an_authority_that_gives_programs_no_login_is_told(server: Guarded, tmp_path: Path) -> None:
    server.authority.changes["grant_types_supported"] = ["authorization_code"]
    with pytest.raises(MCPUnavailable, match="gives programs no login of their own"):
        await echo(server, tmp_path)
    assert asked(server) == []


async def test_nothing_is_sent_over_an_unencrypted_connection(tmp_path: Path) -> None:
    settings = MCPServerSettings.model_validate({"url": "http://docs.example/mcp", "oauth": ALONE})
    with pytest.raises(MCPUnavailable, match="unencrypted"):
        await log_in_alone(address_of("docs", settings, {}), settings.oauth, ENVIRON)


def test_a_program_without_a_secret_cannot_log_in_alone() -> None:
    with pytest.raises(ValidationError, match="client_id and client_secret are required"):
        MCPServerSettings.model_validate({"url": "https://docs.example", "oauth": {**ALONE, "client_secret": ""}})
