"""Which era of the protocol a connection over standard input and output is in, where its client tries both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.test_stdio import HELLO, READY, Raw, call, raw

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HURRIED = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "d"}}


def modern(id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}}


DISCOVER = modern("d", "server/discover")


async def works(client: Raw) -> None:
    client.write(READY, call(2, "planning", command="list"))
    assert not (await client.answer(2))["result"].get("isError")


async def next_message(client: Raw) -> dict[str, Any]:
    assert client.process.stdout is not None
    message: dict[str, Any] = json.loads(await client.process.stdout.readline())
    return message


async def test_who_only_asked_what_there_is_may_still_begin_with_the_handshake(workspace: Path) -> None:
    async with raw(workspace) as client:
        client.write(DISCOVER, HELLO)  # at once: the first is answered first, and not cut off
        assert "2026-07-28" in (await next_message(client))["result"]["supportedVersions"]
        assert (await next_message(client))["result"]["protocolVersion"] == "2025-06-18"
        await works(client)


@pytest.mark.parametrize("answered", [True, False])
async def test_who_does_not_wait_for_what_there_is_begins_with_the_handshake(workspace: Path, answered: bool) -> None:
    async with raw(workspace) as client:
        client.write(DISCOVER)
        if answered:
            assert (await next_message(client))["id"] == "d"
        client.write(HURRIED, modern("e", "server/discover"), HURRIED, HELLO)
        assert (await client.answer(1))["result"]["protocolVersion"] == "2025-06-18"
        await works(client)


async def test_who_asked_for_more_stays_in_the_era_of_2026(workspace: Path) -> None:
    async with raw(workspace) as client:
        client.write(DISCOVER, modern(3, "tools/list"), HELLO)
        assert (await client.answer(1))["error"]["code"] == -32022
        client.write(modern(4, "tools/call", name="planning", arguments={"command": "list"}))
        assert not (await client.answer(4))["result"].get("isError")


async def test_who_began_with_the_handshake_stays_with_it(workspace: Path) -> None:
    async with raw(workspace) as client:
        client.write(HELLO, READY, DISCOVER, {**HELLO, "id": 5})
        await works(client)
