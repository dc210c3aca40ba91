"""What speaks in a supervisor's place can say what it likes: nothing breaks, fills up or stays open out here."""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from handwork.sandbox.connection import Connection
from handwork.sandbox.file_access import FileAccess
from handwork.sandbox.process import Program


class Stranger(FileAccess):
    """The other end of a connection, as a child and as a peer; `notices` and `told` are what came of it."""

    def __init__(self) -> None:
        ours, self.sock = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._exit, self._exit_end = os.pipe()
        self.notices, self.told = list[str](), list[str]()
        errors = os.memfd_create("errors", os.MFD_CLOEXEC)
        self.connection = Connection(ours, self, self._exit, errors, lambda level, text: self.notices.append(text))
        self.connection.tell = self.told.append

    def say(self, message: object, fds: Sequence[int] = ()) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([json.dumps(message).encode()], rights)

    async def answer(self, value: object, fds: Sequence[int]) -> None:
        """Answer the next request."""
        request = json.loads(await asyncio.get_running_loop().sock_recv(self.sock, 65536))
        self.say({"id": request["id"], "ok": value}, fds)

    async def _running(self) -> Connection:
        return self.connection

    def kill(self) -> None:
        """It has ended."""

    def wait(self) -> None:
        """It has ended."""

    async def close(self) -> None:
        self.sock.close()
        os.close(self._exit_end)
        await self.connection.end()


@pytest.fixture
async def stranger() -> AsyncIterator[Stranger]:
    stranger = Stranger()
    stranger.sock.setblocking(False)
    yield stranger
    await stranger.close()


def _open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(
    "words",
    [
        {"over": "memory", "limit": 10**400},
        {"over": "memory", "limit": -1},
        {"over": {}, "limit": []},
        {"spent": [10**400, 1]},
        {"spent": "much"},
        {"pid": 10**400},
        {"pid": None, "pty": True},
        {"errno": {}, "what": []},
        {"exit": "soon"},
        {"exit": None, "gone": []},
        {"job": True},
        {"job": [1]},
        {"id": {}, "ok": 1},
        {"ready": 1, "unfiltered": {"a": []}},
    ],
)
async def test_no_message_breaks_anything(stranger: Stranger, words: dict[str, Any]) -> None:
    problems = list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
    program = Program(stranger.connection, 1)
    stranger.say({"job": 1, **words}, [0, 0])
    stranger.say({"job": 1, "exit": 3, "gone": True})
    async with asyncio.timeout(5):
        assert await program.wait() == 3
    assert problems == []
    assert stranger.connection.alive


async def test_any_number_of_limits_that_are_told_are_a_few_notices(stranger: Stranger) -> None:
    program = Program(stranger.connection, 1)
    for limit in range(500):
        stranger.say({"job": 1, "over": "memory", "limit": limit})
        await asyncio.sleep(0)
    stranger.say({"job": 1, "exit": 0, "gone": True})
    await program.wait()
    assert len(stranger.notices) == 21


_CALLS: dict[str, Callable[[Stranger], Any]] = {
    "stat": lambda files: files.stat("x"),
    "list": lambda files: files.list("x"),
    "resolve": lambda files: files.resolve("x"),
    "remove": lambda files: files.remove("x"),
    "write": lambda files: files.write("x", b"data"),
    "kill": lambda files: Program(files.connection, 7).kill(keep=[1]),
}


@pytest.mark.parametrize("name", _CALLS)
async def test_descriptors_that_nobody_asked_for_are_closed(stranger: Stranger, name: str) -> None:
    before = _open()
    for _ in range(5):
        answering = asyncio.create_task(stranger.answer(None, [0] * 8))
        await _CALLS[name](stranger)
        await answering
    assert _open() <= before
