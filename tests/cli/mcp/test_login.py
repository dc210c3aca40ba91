"""`handwork mcp login` and `logout`, as they are typed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from tests.cli.command import handwork, start
from tests.mcp.login_server import Guarded, guarded


@pytest.fixture
async def server(home: Path) -> AsyncIterator[Guarded]:
    """A server that wants a login, configured as `docs`."""
    async with guarded() as one:
        (home / "mcp.json").write_text(json.dumps({"mcpServers": {"docs": {"url": one.url}}}))
        yield one


async def log_in(folder: Path, *options: str) -> tuple[int, str, str]:
    """Type the command and visit the address that it prints; exit code, output, errors."""
    process = await start("mcp", "login", *options, cwd=folder)
    assert process.stdout is not None
    said = ""
    async with asyncio.timeout(60):
        while not (found := re.search(r"http://\S+/authorize\S+", said)):
            line = await process.stdout.readline()
            assert line, said
            said += line.decode()
    async with aiohttp.ClientSession() as browser, browser.get(found[0]) as page:
        assert "You can close this page" in await page.text()
    rest, errors = await process.communicate()
    return process.returncode or 0, said + rest.decode(), errors.decode()


async def test_a_login_is_made_used_and_ended(server: Guarded, tmp_path: Path) -> None:
    before = await handwork("mcp", "test", "docs", cwd=tmp_path)
    assert before.code == 1
    assert "mcp login docs" in before.out + before.err
    code, out, errors = await log_in(tmp_path, "docs")
    assert (code, errors) == (0, "")
    assert "Logged in at the MCP server docs; the login is kept in" in out
    assert not [token for token in (*server.authority.access, *server.authority.refresh) if token in out]
    after = await handwork("mcp", "test", "docs", cwd=tmp_path)
    assert (after.code, "mcp_docs_echo" in after.out) == (0, True)
    ended = await handwork("mcp", "logout", "docs", cwd=tmp_path)
    assert (ended.code, "its login is forgotten here" in ended.out) == (0, True)
    assert server.authority.access == {}
    again = await handwork("mcp", "logout", "docs", cwd=tmp_path)
    assert (again.code, "There was no login" in again.out) == (0, True)


async def test_a_login_that_is_refused_is_exit_1_with_what_was_said(server: Guarded, tmp_path: Path) -> None:
    server.authority.changes["code_challenge_methods_supported"] = None
    ended = await handwork("mcp", "login", "docs", cwd=tmp_path)
    assert ended.code == 1
    assert "PKCE" in ended.err
    assert "Traceback" not in ended.err


async def test_a_program_has_no_login(home: Path, tmp_path: Path) -> None:
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"local": {"command": "cat"}}}))
    ended = await handwork("mcp", "login", "local", cwd=tmp_path)
    assert ended.code == 2
    assert "is a program, at which nobody logs in" in ended.err


async def test_a_name_that_no_server_has_is_a_usage_error(server: Guarded, tmp_path: Path) -> None:
    ended = await handwork("mcp", "login", "nothing-of-that-name", cwd=tmp_path)
    assert ended.code == 2
    assert server.authority.seen == []
