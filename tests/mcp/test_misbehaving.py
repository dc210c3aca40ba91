"""Servers that misbehave: a bounded time, the right error, calls of others go on, and no process is left."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from handwork.config import MCPServerSettings
from handwork.errors import MCPRefused, MCPUnavailable
from handwork.mcp.connection import Connection
from handwork.mcp.content import Answer, Text
from handwork.sandbox.base import Process

from .place import Place, opened


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path) as place, asyncio.timeout(60):
        yield place


def words(answer: Answer) -> str:
    return ", ".join(part.text for part in answer.parts if isinstance(part, Text))


async def works(connection: Connection) -> bool:
    return words(await connection.call("echo", {"text": "still here"})) == "still here"


async def until(connection: Connection, *states: str) -> None:
    """Wait for a state; what is asked meanwhile waits for the attempt that runs."""
    while connection.state not in states:
        try:
            await connection.ready()
        except MCPUnavailable:
            await asyncio.sleep(0)


# ---- at the start


async def test_a_program_that_is_not_there_is_gone_at_once(place: Place) -> None:
    connection = place.connect_to(MCPServerSettings(command="no-such-server"))
    with pytest.raises(MCPUnavailable, match="there is no program no-such-server in the sandbox") as error:
        await connection.ready()
    assert error.value.lasting
    assert connection.state == "gone"
    assert "no-such-server" in connection.failure
    with pytest.raises(MCPUnavailable, match="no-such-server"):
        await connection.call("echo", {})
    assert place.slept == []


async def test_a_program_that_may_not_be_run_and_a_folder_that_is_not_there_are_named(place: Place) -> None:
    (place.workspace / "plain").write_text("no program")
    plain = place.connect_to(MCPServerSettings(command="./plain"))
    with pytest.raises(MCPUnavailable, match=r"\./plain: Permission denied"):
        await plain.ready()
    nowhere = place.connect_to(place.stub(cwd="nowhere"))
    with pytest.raises(MCPUnavailable, match="nowhere: No such file or directory"):
        await nowhere.ready()


async def test_one_that_dies_at_its_start_says_how_and_is_given_up_after_five_times(place: Place) -> None:
    connection = place.connect("--die", "3", "--say", "no licence\x1b[31m found", "--banner", "1")
    with pytest.raises(MCPUnavailable) as error:
        await connection.ready()
    assert str(error.value) == (
        "The MCP server stub ended with exit code 3. It said last: no licence␛[31m found. "
        "On its standard output it wrote what is no message: Welcome to the stub, line 0"
    )
    await until(connection, "gone")
    assert place.slept == [0.5, 1.0, 2.0, 4.0]
    assert "exit code 3" in connection.failure


async def test_one_that_is_mute_at_its_start_has_its_time_and_no_more(place: Place) -> None:
    connection = place.connect("--mute", "--say", "loading")
    ready = asyncio.create_task(connection.ready())
    while not (place.started and "loading" in place.started[0].errors):
        await asyncio.wait([ready], timeout=0.01)
    place.clock.pass_(30)
    with pytest.raises(MCPUnavailable, match=r"stub did not answer within 30 s. It said last: loading"):
        await ready


async def test_one_that_dies_at_the_first_question_of_the_newer_protocol_is_asked_in_the_older(place: Place) -> None:
    connection = place.connect("--die-on-discover")
    assert (await connection.ready()).protocol == "2025-11-25"
    assert await works(connection)
    assert len(place.started) == 2


@pytest.mark.slow
@pytest.mark.parametrize("limit", [5, 30])
async def test_one_that_is_silent_at_the_newer_protocols_question_is_connected_at_its_first_start(
    place: Place, limit: float
) -> None:
    connection = place.connect("--mute-on-discover", timeout=limit)
    ready = asyncio.create_task(connection.ready())
    await place.clock.run_out(min(limit / 2, 10))
    with place.clock.stopped():
        assert (await ready).protocol == "2025-11-25"
        assert await works(connection)
    assert (len(place.started), place.slept, place.notices) == (1, [], [])


async def test_one_that_was_silent_at_the_newer_protocols_question_is_not_asked_it_again(place: Place) -> None:
    connection = place.connect("--mute-on-discover")
    ready = asyncio.create_task(connection.ready())
    await place.clock.run_out(10)
    await ready
    assert json.loads(words(await connection.call("heard", {})))[0] == "server/discover"
    with pytest.raises(MCPUnavailable):
        await connection.call("die", {})
    assert await works(connection)
    assert "server/discover" not in words(await connection.call("heard", {}))


@pytest.mark.parametrize("backend", ["bwrap", "host"])
@pytest.mark.parametrize("before", ["", "exec 0<&-; "])
async def test_one_that_takes_no_input_any_more_because_it_ended_is_told_as_it_ended(
    tmp_path: Path, backend: str, before: str
) -> None:
    async with opened(tmp_path, backend) as place:
        connection = place.connect_to(MCPServerSettings(command="sh", args=("-c", f"{before}exit 3")))
        with pytest.raises(MCPUnavailable, match="The MCP server stub ended with exit code 3"):
            await connection.ready()


async def test_an_end_that_is_reported_late_is_told_as_it_was(place: Place) -> None:
    async def spawn(argv: Sequence[str], **where: Any) -> Any:
        return Late(await place.surroundings().spawn(argv, **where))

    settings = MCPServerSettings(command="sh", args=("-c", "exec 0<&- >&-; exit 3"))
    connection = Connection("late", settings, replace(place.surroundings(), spawn=spawn), sleep=place.sleep)
    with pytest.raises(MCPUnavailable, match="The MCP server late ended with exit code 3"):
        await connection.ready()
    await connection.close()


class Late:
    """A program whose end is reported only when somebody wants to end it."""

    def __init__(self, program: Process) -> None:
        self._program, self._asked = program, asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    @property
    def returncode(self) -> int | None:
        return self._program.returncode if self._asked.is_set() else None

    async def read(self, limit: int) -> bytes:
        await self._asked.wait()
        return b""

    async def wait(self) -> int:
        await self._asked.wait()
        return await self._program.wait()

    async def kill(self) -> None:
        await self._program.wait()
        self._asked.set()


async def test_one_that_refuses_says_so(place: Place) -> None:
    with pytest.raises(MCPUnavailable, match="does not connect: Not today"):
        await place.connect("--refuse").ready()


async def test_one_whose_first_answer_breaks_the_protocol_is_told_where_in_short(place: Place) -> None:
    with pytest.raises(
        MCPUnavailable, match=r"an answer breaks the protocol \(protocolVersion: Input should be"
    ) as error:
        await place.connect("--break-it").ready()
    assert "http" not in str(error.value)


async def test_an_unknown_version_of_the_protocol_is_final(place: Place) -> None:
    connection = place.connect("--version", "1999-01-01")
    with pytest.raises(MCPUnavailable, match="1999-01-01") as error:
        await connection.ready()
    assert error.value.lasting
    assert connection.state == "gone"


async def test_a_slow_start_is_waited_for(place: Place) -> None:
    assert await works(place.connect("--start-slowly", "1"))


# ---- lines


@pytest.mark.parametrize("option", ["--noise", "--crlf", "--bom", "--flood-errors"])
async def test_what_stands_around_messages_does_not_matter(place: Place, option: str) -> None:
    connection = place.connect(option, "--banner", "2")
    for _ in range(5):
        assert await works(connection)
    await connection.close()
    assert connection.banners == (10 if option == "--noise" else 2)


async def test_many_lines_that_are_no_messages_are_told_once(place: Place) -> None:
    connection = place.connect("--noise", "--banner", "20")
    for _ in range(20):
        assert await works(connection)
    assert place.notices == [
        "The MCP server stub writes what is no message on its standard output, which is skipped: Welcome to the stub, line 0"
    ]


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        ("garbage", "after garbage"),
        ("surrogate", "half � of it"),
        ("latin", "caf�"),
        ("nul", "a\x00b"),
        ("batch", ""),
        ("twice", "first"),
        ("unknown", "known"),
        ("errors", "said"),
        ("flood", "flooded"),
    ],
)
async def test_odd_bytes_cost_no_call_its_answer(place: Place, tool: str, answer: str) -> None:
    connection = place.connect()
    assert words(await connection.call(tool, {})) == answer
    assert await works(connection)


@pytest.mark.parametrize("tool", ["deep", "digits"])
async def test_an_answer_that_nobody_can_read_is_an_error_at_once(place: Place, tool: str) -> None:
    connection = place.connect()
    with pytest.raises(MCPRefused, match="nested too deeply"):
        await connection.call(tool, {})
    assert await works(connection)


async def test_a_message_beyond_all_bounds_ends_the_connection_in_bounded_memory(place: Place) -> None:
    connection = place.connect()
    await connection.ready()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MCPUnavailable, match="sent a message of more than 64 MB and was ended"):
        await connection.call("large", {})
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 200_000_000
    await until(connection, "ready")
    assert await works(connection)


async def test_a_flood_of_notifications_stops_nobody_else(place: Place) -> None:
    flooding, other = place.connect(), place.connect(name="other")
    await asyncio.gather(flooding.ready(), other.ready())
    flood = asyncio.create_task(flooding.call("flood", {}))
    answered = 0
    while not flood.done():
        assert await works(other)
        answered += 1
    assert answered > 5
    assert words(await flood) == "flooded"


async def test_what_breaks_the_protocol_is_not_written_on_the_terminal(tmp_path: Path) -> None:
    script = (
        "import asyncio, pathlib, sys\n"
        "from tests.mcp.place import opened\n"
        "async def main():\n"
        "    async with opened(pathlib.Path(sys.argv[1])) as place:\n"
        "        connection = place.connect()\n"
        "        await connection.call('invalid', {})\n"
        "        await connection.call('echo', {'text': 'x'})\n"
        "asyncio.run(main())\n"
    )
    done = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path), cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert await done.communicate() == (b"", b"")
    assert done.returncode == 0


# ---- calls


@pytest.mark.parametrize(("tool", "how"), [("die", "ended with exit code 7"), ("half", "ended with exit code 0")])
async def test_one_that_dies_in_a_call_fails_all_calls_and_repeats_none(place: Place, tool: str, how: str) -> None:
    connection, other = place.connect(), place.connect(name="other")
    await other.ready()
    waiting = asyncio.create_task(connection.call("mute", {}))
    await connection.ready()
    with pytest.raises(MCPUnavailable, match=how) as error:
        await connection.call(tool, {})
    assert "is not known" in str(error.value)
    with pytest.raises(MCPUnavailable, match=how):
        await waiting
    assert await works(other)
    assert await works(connection)
    assert len(place.started) == 3
    assert "tools/call, tools/call, tools/call" not in words(await connection.call("heard", {}))


async def test_one_that_dies_in_every_call_is_tried_with_growing_pauses_and_then_given_up(place: Place) -> None:
    connection = place.connect()
    for _ in range(5):
        with pytest.raises(MCPUnavailable, match="exit code 7"):
            await connection.call("die", {})
    await until(connection, "gone")
    assert place.slept == [0.5, 1.0, 2.0, 4.0]
    with pytest.raises(MCPUnavailable, match="exit code 7"):
        await connection.call("echo", {"text": "anybody?"})


async def test_an_answer_in_between_begins_the_pauses_anew(place: Place) -> None:
    connection = place.connect()
    for _ in range(3):
        assert await works(connection)
        with pytest.raises(MCPUnavailable):
            await connection.call("die", {})
    assert await works(connection)
    assert place.slept == [0.5, 0.5, 0.5]


async def test_a_call_without_an_answer_has_its_time_and_hurts_no_other(place: Place) -> None:
    connection = place.connect()
    await connection.ready()
    mute = asyncio.create_task(connection.call("mute", {}))
    assert await works(connection)
    place.clock.pass_(20)
    assert await works(connection)
    assert not mute.done()
    place.clock.pass_(10)
    with pytest.raises(MCPRefused, match=r"did not answer within 30 s \(the call of mute\)") as error:
        await mute
    assert error.value.code == -32001
    assert connection.state == "ready"
    assert "notifications/cancelled" in words(await connection.call("heard", {}))


async def test_one_that_does_not_read_holds_nobody_up(place: Place) -> None:
    connection, other = place.connect("--stop-reading"), place.connect(name="other")
    await connection.ready()
    call = asyncio.create_task(connection.call("echo", {"text": "x" * 1_000_000}))
    assert await works(other)
    assert not call.done()
    place.clock.pass_(30)
    with pytest.raises(MCPRefused, match="did not answer within"):
        await call
    await connection.close()
    assert place.started[0].returncode == -9


# ---- lists


@pytest.mark.parametrize("option", ["--endless-pages", "--same-cursor"])
async def test_a_list_that_never_ends_is_cut_and_told(place: Place, option: str) -> None:
    connection = place.connect(option)
    assert len((await connection.ready()).tools) <= 102
    assert await works(connection)
    assert len([text for text in connection.left_out if "does not end" in text]) == 1


async def test_a_huge_number_of_tools_is_cut(place: Place) -> None:
    assert len((await place.connect("--many", "5000").ready()).tools) <= 2000


async def test_one_without_tools_is_connected(place: Place) -> None:
    assert (await place.connect("--no-tools").ready()).tools == ()


# ---- the end


async def test_one_that_ignores_its_end_is_killed_with_its_children(place: Place) -> None:
    connection = place.connect("--ignore-end", "--child")
    await connection.ready()
    process = place.started[0]
    await connection.call("child", {})
    assert len(await process.descendants()) >= 2
    async with asyncio.timeout(10):
        await connection.close()
    assert process.returncode == -9
    assert await process.descendants() == []


async def test_one_that_ends_in_order_leaves_no_child_behind_either(place: Place) -> None:
    connection = place.connect("--child")
    await connection.ready()
    await connection.close()
    assert place.started[0].returncode == 0
    assert await place.started[0].descendants() == []


async def test_the_end_of_the_sandbox_is_the_end_of_its_servers(place: Place) -> None:
    connection = place.connect()
    await connection.ready()
    call = asyncio.create_task(connection.call("mute", {}))
    assert await works(connection)
    await place.sandbox.close()
    with pytest.raises(MCPUnavailable, match="is gone"):
        await call
    await until(connection, "gone", "closed")


async def test_a_task_that_is_cancelled_leaves_no_server(tmp_path: Path) -> None:
    ready = asyncio.Event()

    async def session() -> None:
        async with opened(tmp_path) as place:
            await place.connect("--ignore-end", "--child").ready()
            ready.set()
            await asyncio.Event().wait()

    before = {child.pid for child in psutil.Process().children(recursive=True)}
    task = asyncio.create_task(session())
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
