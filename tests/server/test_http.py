"""The server over HTTP, met by a real client and by raw requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from handwork.errors import ConfigError, HandworkError
from handwork.server.desk import MOST, SHARE, Desk
from handwork.server.exchange import Exchange
from handwork.server.over_http import Address, serve_http
from handwork.server.presence import Presence
from handwork.server.protocol import session_key
from tests.server.clients import MODES, Human, Progress, over_http, serving, text_of
from tests.server.conftest import MakeHouse
from tests.server.watching import sleeping, until

LEGACY, MODERN = MODES
both_eras = pytest.mark.parametrize("mode", MODES)


@both_eras
async def test_a_client_with_the_token_lists_and_calls(make_house: MakeHouse, tmp_path: Path, mode: str) -> None:
    async with serving(make_house(), tmp_path) as (url, token), over_http(url, token, mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["bash", "python_execute", "str_replace_editor", "search_files", "planning", "run_task"]
        told = Progress()
        slow = "for i in 1 2 3; do echo line $i; sleep 0.3; done"
        result = await client.call_tool("bash", {"command": slow}, progress_callback=told)
        assert text_of(result).startswith("line 1\nline 2\nline 3\n")
        assert "line 1" in "\n".join(told)
        assert (await client.call_tool("bsh", {})).is_error


async def test_a_session_of_the_transport_keeps_its_shell(make_house: MakeHouse, tmp_path: Path) -> None:
    async with serving(make_house(), tmp_path) as (url, token), over_http(url, token, LEGACY) as client:
        await client.call_tool("bash", {"command": "X=5"})
        assert text_of(await client.call_tool("bash", {"command": "echo $X"})) == "5\n"


async def test_a_client_without_sessions_names_the_one_it_was_told(make_house: MakeHouse, tmp_path: Path) -> None:
    async with serving(make_house(), tmp_path) as (url, token), over_http(url, token, MODERN) as client:
        tools = (await client.list_tools()).tools
        assert all("session" in tool.input_schema["properties"] for tool in tools)
        first = text_of(await client.call_tool("bash", {"command": "X=5"}))
        handle = first.split("(session: ")[1].rstrip(")")
        again = text_of(await client.call_tool("bash", {"command": "echo [$X]", "session": handle}))
        assert again == f"[5]\n\n(session: {handle})"
        other = text_of(await client.call_tool("bash", {"command": "echo [$X]"}))
        assert other.startswith("[]\n")
        assert handle not in other
        unknown = await client.call_tool("bash", {"command": "echo", "session": "0123456789abcdef"})
        assert unknown.is_error
        assert "There is no session '0123456789abcdef'" in text_of(unknown)


@both_eras
async def test_a_client_reads_the_files_of_its_answers_and_no_list_shows_them_to_others(
    make_house: MakeHouse, tmp_path: Path, mode: str
) -> None:
    async with (
        serving(make_house(), tmp_path) as (url, token),
        over_http(url, token, mode) as one,
        over_http(url, token, mode) as other,
    ):
        result = await one.call_tool("bash", {"command": "seq 10000"})
        [link] = [block for block in result.content if block.type == "resource_link"]
        assert "\n10000\n" in (await one.read_resource(link.uri)).contents[0].text
        assert [each.uri for each in (await one.list_resources()).resources] == ([link.uri] if mode == LEGACY else [])
        assert not (await other.list_resources()).resources


@both_eras
async def test_a_human_is_asked_over_http(make_house: MakeHouse, tmp_path: Path, mode: str) -> None:
    human = Human({"decision": "allow"}, "decline")
    house = make_house(policy={"approve": "ask"})
    async with serving(house, tmp_path) as (url, token), over_http(url, token, mode, human) as client:
        assert not (await client.call_tool("bash", {"command": "echo 1"})).is_error
        assert (await client.call_tool("bash", {"command": "echo 2"})).is_error
    assert len(human.asked) == 2


@both_eras
async def test_a_call_that_is_cancelled_over_http_ends_its_programs(
    make_house: MakeHouse, tmp_path: Path, workspace: Path, mode: str
) -> None:
    async with serving(make_house(), tmp_path) as (url, token), over_http(url, token, mode) as client:
        hang = {"command": "echo > begun; sleep 141421 & sleep 141421"}
        call = asyncio.create_task(client.call_tool("bash", hang))
        await until(lambda: (workspace / "begun").exists())
        call.cancel()
        await asyncio.wait({call})
        await until(lambda: not sleeping("141421"))


async def test_two_clients_at_once_share_no_shell(make_house: MakeHouse, tmp_path: Path) -> None:
    async with (
        serving(make_house(), tmp_path) as (url, token),
        over_http(url, token) as one,
        over_http(url, token) as other,
    ):
        await one.call_tool("bash", {"command": "X=secret"})
        slow = asyncio.create_task(one.call_tool("bash", {"command": "sleep 0.5; echo done"}))
        assert text_of(await other.call_tool("bash", {"command": "echo [$X]"})) == "[]\n"
        assert text_of(await slow) == "done\n"


async def test_a_client_that_says_good_bye_leaves_nothing(make_house: MakeHouse, tmp_path: Path) -> None:
    async with serving(make_house(), tmp_path) as (url, token):
        async with over_http(url, token, LEGACY) as client:
            await client.call_tool("bash", {"command": "sleep 223606 &"})
            assert sleeping("223606")
        await until(lambda: not sleeping("223606"))


async def test_the_end_of_the_server_leaves_nothing(make_house: MakeHouse, tmp_path: Path, workspace: Path) -> None:
    async with serving(make_house(), tmp_path) as (url, token):
        request = post(call("bash", {"command": "echo > begun; sleep 244948"}), token, *MODERN_HEADERS)
        _, writer = await opened(url, request)
        await until(lambda: (workspace / "begun").exists())
    assert not sleeping("244948")
    writer.close()


async def test_a_client_whose_stream_breaks_off_and_stays_away_is_gone(make_house: MakeHouse) -> None:
    desk = Desk(make_house())
    guest = desk.guest(session_key("abc"), "one")
    work = guest.begin("bash", {"command": "sleep 264575"}, Exchange(can_ask=False))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        return

    async def nothing(*_: Any) -> dict[str, Any]:
        return {}

    presence = Presence(app, desk, grace=0.05)
    scope = {"type": "http", "method": "GET", "headers": [(b"mcp-session-id", b"abc")]}
    await until(lambda: sleeping("264575"))
    await presence(scope, nothing, nothing)
    await until(work.done)
    await until(lambda: not sleeping("264575"))
    assert desk.known(session_key("abc")) is None
    await desk.close()


async def test_who_is_silent_for_long_costs_nothing_any_more(make_house: MakeHouse) -> None:
    desk = Desk(make_house(), idle=0.2)
    watching = asyncio.create_task(desk.watch())
    handle, guest = desk.by_handle(None, "one")
    session = desk.guest(session_key("abc"), "other")
    for each in (guest, session):
        await each.begin("bash", {"command": "sleep 282842 &"}, Exchange(can_ask=False))
    await until(lambda: not sleeping("282842"))
    assert desk.known(handle) is None
    assert desk.known(session_key("abc")) is session
    watching.cancel()
    await desk.close()


async def test_that_the_last_of_a_session_is_not_on_disk_is_told_and_the_client_can_go_on(
    make_house: MakeHouse, said: list[str]
) -> None:
    desk = Desk(make_house())
    guest = desk.guest(session_key("abc"), "one")
    await guest.begin("bash", {"command": "echo"}, Exchange(can_ask=False))
    assert guest._session is not None
    connection = guest._session._store._connection
    connection.execute("PRAGMA query_only = 1")  # as if the disk were read-only
    await guest.rest()
    assert "are not on disk" in "".join(said)
    connection.execute("PRAGMA query_only = 0")
    assert (await guest.begin("bash", {"command": "echo on"}, Exchange(can_ask=False))).text == "on\n"
    await desk.close()


async def test_there_is_room_for_so_many_clients_and_the_longest_silent_goes_first(make_house: MakeHouse) -> None:
    desk = Desk(make_house())
    first = desk.guest("first", "first")
    for number in range(63):
        desk.guest(str(number), "x").used = first.used + 1
    desk.guest("one more", "x")
    assert desk.known("first") is None
    assert desk.known("0") is not None
    await desk.close()


# ---- raw requests

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
MODERN_HEADERS = (("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "bash"))
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, "_meta": META}
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}


def post(
    body: Any, token: str | None, *headers: tuple[str, str], host: str | None = None, kind: str = "application/json"
) -> list[str | bytes]:
    """A request, whose Host is filled in by `opened` unless one is given."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    rows = [("Accept", "application/json, text/event-stream"), ("Content-Type", kind), *headers]
    rows += [("Authorization", f"Bearer {token}")] if token else []
    head = "".join(f"{name}: {value}\r\n" for name, value in rows)
    return [f"POST /mcp HTTP/1.1\r\nHost: {host or '@'}\r\nContent-Length: {len(data)}\r\n{head}\r\n", data]


async def opened(url: str, request: list[str | bytes]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = url.split("/")[2]
    reader, writer = await asyncio.open_connection("127.0.0.1", int(place.rpartition(":")[2]))
    for part in request:
        writer.write(part.replace("Host: @", f"Host: {place}").encode() if isinstance(part, str) else part)
    return reader, writer


async def answer(url: str, request: list[str | bytes]) -> str:
    """The head of the answer, and the beginning of its body."""
    reader, writer = await opened(url, request)
    async with asyncio.timeout(20):
        head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return head.decode()


async def test_without_the_token_or_from_elsewhere_nobody_is_served(make_house: MakeHouse, tmp_path: Path) -> None:
    async with serving(make_house(), tmp_path) as (url, token):
        no_token = await answer(url, post(HELLO, None))
        assert no_token.startswith("HTTP/1.1 401 ")
        assert "www-authenticate: Bearer" in no_token
        assert (await answer(url, post(HELLO, token + "x"))).startswith("HTTP/1.1 401 ")
        assert (await answer(url, post(HELLO, token, host="evil.example"))).startswith("HTTP/1.1 421 ")
        foreign = ("Origin", "https://evil.example")
        refused = await answer(url, post(HELLO, token, foreign))
        assert refused.startswith("HTTP/1.1 403 ")
        assert "access-control" not in refused.lower()
        assert (await answer(url, post(HELLO, token))).startswith("HTTP/1.1 200 ")


async def test_clients_that_never_said_good_bye_keep_nobody_out(make_house: MakeHouse, tmp_path: Path) -> None:
    async with serving(make_house(), tmp_path) as (url, token):
        for _ in range(MOST + 2):
            assert (await answer(url, post(HELLO, token))).startswith("HTTP/1.1 200 ")
        async with over_http(url, token, LEGACY) as client:
            assert text_of(await client.call_tool("bash", {"command": "echo in"})) == "in\n"


async def test_a_client_without_sessions_that_has_all_its_calls_open_keeps_no_other_out(
    make_house: MakeHouse, tmp_path: Path
) -> None:
    async with silent_model() as (address, asked):
        house = make_house(llm={"model": "openai:any", "base_url": address})
        async with (
            serving(house, tmp_path) as (url, token),
            over_http(url, token, MODERN, name="greedy") as greedy,
            over_http(url, token, MODERN, name="modest") as modest,
        ):
            calls = [asyncio.create_task(greedy.call_tool("run_task", {"task": "Go."})) for _ in range(32)]
            await until(lambda: len(asked) == 32)
            assert text_of(await greedy.call_tool("run_task", {})).startswith("Error: 32 calls are open already")
            assert text_of(await modest.call_tool("run_task", {})).startswith("Error: Invalid arguments for run_task")
            assert text_of(await modest.call_tool("bash", {"command": "echo in"})).startswith("in\n")
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)


@asynccontextmanager
async def silent_model() -> AsyncIterator[tuple[str, list[asyncio.StreamWriter]]]:
    """A model's server that never answers: its address, and the connections that were made to it."""
    asked: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: asked.append(writer), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", asked
    finally:
        for writer in asked:
            writer.close()
        server.close()


async def test_a_client_that_names_no_handle_pushes_out_no_session_of_another(make_house: MakeHouse) -> None:
    desk = Desk(make_house())
    handle, modest = desk.by_handle(None, "modest", "modest")
    handles = [desk.by_handle(None, "greedy", "greedy")[0] for _ in range(MOST + 20)]
    assert desk.by_handle(handle, "modest", "modest") == (handle, modest)
    assert desk.known(handles[0]) is None
    assert desk.known(handles[-1]) is not None
    await desk.close()


async def test_a_client_with_its_share_of_sessions_at_work_leaves_room_for_another(make_house: MakeHouse) -> None:
    desk, exchange = Desk(make_house()), Exchange(can_ask=False)
    for _ in range(SHARE):
        desk.by_handle(None, "greedy", "greedy")[1].begin("planning", {"command": "list"}, exchange)
    with pytest.raises(HandworkError, match="32 sessions of this client are at work already"):
        desk.by_handle(None, "greedy", "greedy")
    desk.by_handle(None, "modest", "modest")
    await desk.close()


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"no json", "application/json", 400),
        (b"", "application/json", 400),
        ([HELLO, HELLO], "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (HELLO, "text/plain", 400),
        (b"x" * (16 * 1024 * 1024 + 1), "application/json", 413),
    ],
)
async def test_a_body_that_is_no_message_is_refused_and_the_server_lives(
    make_house: MakeHouse, tmp_path: Path, body: Any, kind: str, status: int
) -> None:
    async with serving(make_house(), tmp_path) as (url, token):
        assert (await answer(url, post(body, token, kind=kind))).startswith(f"HTTP/1.1 {status} ")
        assert (await answer(url, post(HELLO, token))).startswith("HTTP/1.1 200 ")


async def test_a_port_that_is_taken_is_said(make_house: MakeHouse, tmp_path: Path) -> None:
    async with serving(make_house(), tmp_path) as (url, _):
        port = int(url.split(":")[2].split("/")[0])
        with pytest.raises(ConfigError, match=f"Cannot listen on 127.0.0.1, port {port}: .* --port 0 takes a free"):
            await serve_http(make_house(), Address("127.0.0.1", port, tmp_path / "token"), asyncio.Event())


async def test_whoever_opens_the_server_to_others_is_told_that_nothing_is_encrypted(
    make_house: MakeHouse, tmp_path: Path, said: list[str]
) -> None:
    stop = asyncio.Event()
    stop.set()
    await serve_http(make_house(), Address("0.0.0.0", 0, tmp_path / "token"), stop)
    assert "nothing on the way is encrypted" in said[0]
    assert said[1].startswith("Serving MCP at http://0.0.0.0:")
    assert (tmp_path / "token").read_text().strip() not in "".join(said)
