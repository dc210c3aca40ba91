"""Tokens in use: renewed in time and once, whoever asks; kept before they are used; of no use to another server."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from handwork.config import MCPServerSettings
from handwork.errors import MCPLoginNeeded, MCPUnavailable
from handwork.mcp.address import Address, address_of
from handwork.mcp.bearer import Bearer
from handwork.mcp.content import Text
from handwork.mcp.tokens import Grant, TokenStore
from tests.mcp.http_servers import around, connected
from tests.mcp.login_server import Guarded, guarded, logged_in

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def server() -> AsyncIterator[Guarded]:
    async with guarded() as one:
        yield one


def address(server: Guarded, name: str = "docs") -> Address:
    return address_of(name, MCPServerSettings.model_validate({"url": server.url}), {})


async def age(server: Guarded, home: Path, seconds: float = 0.0) -> Grant:
    """The token ends in so many seconds, as far as we know; what is kept now."""
    store = TokenStore(home, address(server))
    grant = await store.read()
    assert grant
    await store.write(replace(grant, until=time.time() + seconds))
    return grant


async def echo(server: Guarded, home: Path, **more: Any) -> None:
    async with connected(server.url, home, **more) as connection:
        assert (await connection.call("echo", {"text": "in"})).parts == (Text("in"),)


def renewals(server: Guarded) -> int:
    return sum(form["grant_type"] == "refresh_token" for form in server.authority.asked("/token"))


async def test_a_token_that_ends_is_renewed_before_it_is_used(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    old = await age(server, tmp_path)
    await echo(server, tmp_path)
    new = await TokenStore(tmp_path, address(server)).read()
    assert new
    assert (renewals(server), new.access_token != old.access_token, new.refresh_token != old.refresh_token) == (
        1,
        True,
        True,
    )
    asked = server.authority.asked("/token")[-1]
    assert (asked["client_id"], asked["resource"]) == ("client-1", server.url)


async def test_a_token_that_is_refused_is_renewed_once_and_the_request_sent_again(
    server: Guarded, tmp_path: Path
) -> None:
    await logged_in(server, tmp_path)
    async with connected(server.url, tmp_path) as connection:
        await connection.ready()
        server.authority.access.clear()
        answers = await asyncio.gather(*(connection.call("echo", {"text": str(each)}) for each in range(8)))
    assert [answer.parts for answer in answers] == [(Text(str(each)),) for each in range(8)]
    assert renewals(server) == 1
    assert server.plain.asked("tools/call") == 8


async def test_tokens_are_told_to_who_hides_them_before_they_are_used(server: Guarded, tmp_path: Path) -> None:
    hidden: set[str] = set()
    await logged_in(server, tmp_path)
    await age(server, tmp_path)
    await echo(server, tmp_path, around_it=around(tmp_path, hide=hidden.update))
    assert set(server.authority.access) <= hidden
    assert set(server.authority.refresh) <= hidden


async def test_without_a_way_to_renew_a_login_is_needed(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    store = TokenStore(tmp_path, address(server))
    grant = await store.read()
    assert grant
    await store.write(replace(grant, refresh_token="", until=time.time() - 10))
    server.authority.access.clear()
    with pytest.raises(MCPLoginNeeded, match="wants you to log in"):
        await echo(server, tmp_path)


async def test_a_renewal_that_is_refused_for_good_forgets_the_tokens(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    await age(server, tmp_path)
    server.authority.refresh.clear()
    with pytest.raises(MCPLoginNeeded) as caught:
        await echo(server, tmp_path)
    assert caught.value.hint == "handwork mcp login docs"
    assert await TokenStore(tmp_path, address(server)).read() is None


@pytest.mark.parametrize(("status", "body"), [(500, b""), (503, b"{}"), (429, b"{}"), (404, b""), (200, b"<html>")])
async def test_a_renewal_that_fails_for_now_keeps_the_tokens(
    server: Guarded, tmp_path: Path, status: int, body: bytes
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, body=body)

    await logged_in(server, tmp_path)
    await age(server, tmp_path)
    server.authority.instead["/token"] = answer
    with pytest.raises(MCPUnavailable):
        await echo(server, tmp_path)
    del server.authority.instead["/token"]
    await echo(server, tmp_path)


async def test_a_token_that_is_still_good_is_used_where_its_renewal_fails(server: Guarded, tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=503)

    await logged_in(server, tmp_path)
    await age(server, tmp_path, 20.0)
    server.authority.instead["/token"] = answer
    await echo(server, tmp_path)


async def test_an_answer_that_was_lost_ends_in_a_login_and_not_in_a_loop(server: Guarded, tmp_path: Path) -> None:
    """The server has changed the token, and we never hear it: the one that we have is worth nothing."""

    async def lost(request: web.Request) -> web.Response:
        await server.authority._token(request)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    await logged_in(server, tmp_path)
    await age(server, tmp_path)
    server.authority.instead["/token"] = lost
    bearer = Bearer(address(server), around(tmp_path))
    with pytest.raises(MCPUnavailable, match="was lost"):
        await bearer.token()
    del server.authority.instead["/token"]
    with pytest.raises(MCPLoginNeeded):
        await bearer.token()
    assert renewals(server) == 2


async def test_a_renewal_under_way_is_kept_though_its_connection_ends(server: Guarded, tmp_path: Path) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        asked.set()
        await go.wait()
        return await server.authority._token(request)

    await logged_in(server, tmp_path)
    await age(server, tmp_path)
    server.authority.instead["/token"] = slow
    bearer = Bearer(address(server), around(tmp_path))
    waiting = asyncio.create_task(bearer.token())
    await asked.wait()
    waiting.cancel()
    closing = asyncio.create_task(bearer.close())
    go.set()
    await closing
    kept = await TokenStore(tmp_path, address(server)).read()
    assert kept
    assert kept.access_token in server.authority.access


async def test_several_connections_renew_once(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    await age(server, tmp_path)
    bearers = [Bearer(address(server), around(tmp_path)) for _ in range(5)]
    tokens = await asyncio.gather(*(bearer.token() for bearer in bearers))
    assert renewals(server) == 1
    assert set(tokens) <= set(server.authority.access)


_PROGRAM = """
import asyncio, sys
from pathlib import Path
from handwork.config import MCPServerSettings
from handwork.mcp.address import address_of
from handwork.mcp.bearer import Bearer
from tests.mcp.http_servers import around

async def main():
    there = address_of("docs", MCPServerSettings.model_validate({"url": sys.argv[1]}), {})
    bearer = Bearer(there, around(Path(sys.argv[2])))
    print("here", flush=True)
    sys.stdin.readline()
    print(await bearer.token(), flush=True)

asyncio.run(main())
"""


async def _program(server: Guarded, home: Path) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    line = [sys.executable, "-c", _PROGRAM, server.url, str(home)]
    return await asyncio.create_subprocess_exec(*line, cwd=ROOT, stdin=pipe, stdout=pipe)


async def test_two_programs_renew_once(server: Guarded, tmp_path: Path) -> None:
    both = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        await asyncio.wait([asyncio.create_task(both.wait())], timeout=0.5)  # so that the other one comes meanwhile
        return await server.authority._token(request)

    await logged_in(server, tmp_path)
    await age(server, tmp_path)
    server.authority.instead["/token"] = slow
    programs = [await _program(server, tmp_path) for _ in range(2)]
    for program in programs:
        assert program.stdout
        assert await program.stdout.readline() == b"here\n"
    outputs = await asyncio.gather(*(program.communicate(b"go\n") for program in programs))
    both.set()
    tokens = {output.decode().strip() for output, _ in outputs}
    assert renewals(server) == 1
    assert len(tokens) == 1
    assert tokens <= set(server.authority.access)


# ---- whose they are


async def test_tokens_are_for_one_name_one_origin_and_one_path(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    mine = address(server)
    assert await TokenStore(tmp_path, mine).read()
    for other in (
        replace(mine, name="other"),
        replace(mine, url=mine.url.replace("/mcp", "/mcp2")),
        replace(mine, url="https://evil.example/mcp", origin="https://evil.example:443"),
    ):
        assert await TokenStore(tmp_path, other).read() is None


async def test_a_file_that_was_moved_to_another_server_gives_it_nothing(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    mine = TokenStore(tmp_path, address(server))
    theirs = TokenStore(
        tmp_path, replace(address(server), url="https://evil.example/mcp", origin="https://evil.example:443")
    )
    data = json.loads((mine.folder / "keys.json").read_text())
    data["keys"] = {theirs._entry: data["keys"][mine._entry]}
    (mine.folder / "keys.json").write_text(json.dumps(data))
    mine.folder.rename(theirs.folder)
    assert await theirs.read() is None


async def test_a_token_goes_to_the_server_and_to_nobody_else(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    async with guarded() as other:
        moved = server.plain

        async def away(request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
            return web.Response(status=307, headers={"Location": other.url})

        moved.answers["*"] = away
        with pytest.raises(MCPUnavailable, match="redirects to"):
            await echo(server, tmp_path)
        assert other.plain.seen == []


async def test_damaged_tokens_are_a_missing_login(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    store = TokenStore(tmp_path, address(server))
    file = store.folder / "keys.json"
    data = json.loads(file.read_text())
    for entry in data["keys"].values():
        entry["key"] = '{"issuer": 3}'
    file.write_text(json.dumps(data))
    with pytest.raises(MCPLoginNeeded):
        await echo(server, tmp_path)


async def test_a_file_that_is_no_json_says_how_to_mend_it(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    (TokenStore(tmp_path, address(server)).folder / "keys.json").write_text("{")
    with pytest.raises(MCPUnavailable) as caught:
        await echo(server, tmp_path)
    assert caught.value.hint == "handwork mcp login docs stores it anew"


async def test_tokens_are_not_in_what_is_printed_of_them(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    grant = await TokenStore(tmp_path, address(server)).read()
    assert grant
    assert not [secret for secret in grant.secrets if secret in repr(grant)]


async def test_a_lock_is_given_up_by_a_program_that_was_killed(server: Guarded, tmp_path: Path) -> None:
    await logged_in(server, tmp_path)
    await age(server, tmp_path)
    store = TokenStore(tmp_path, address(server))
    code = f"import fcntl, os, sys; f = os.open({str(store.folder / 'lock')!r}, os.O_RDWR | os.O_CREAT); "
    code += "fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout is not None
    await holder.stdout.readline()
    waiting = asyncio.create_task(echo(server, tmp_path))
    done, _ = await asyncio.wait([waiting], timeout=0.3)
    assert not done
    holder.kill()
    await holder.communicate()
    await waiting
    assert renewals(server) == 1


async def test_a_file_that_others_could_read_is_closed_and_the_user_told(server: Guarded, tmp_path: Path) -> None:
    told: list[str] = []
    file = Path(await logged_in(server, tmp_path) or "")
    _open_to_all(file)
    await echo(server, tmp_path, around_it=around(tmp_path, notify=lambda level, text: told.append(text)))
    assert _mode(file) == 0o600
    assert [text for text in told if "could be read by others" in text]


def _open_to_all(file: Path) -> None:
    file.chmod(0o644)


def _mode(file: Path) -> int:
    return file.stat().st_mode & 0o777
