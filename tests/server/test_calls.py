"""A client calls our tools, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from handwork.events import RunFinished, RunStarted, ToolCallFinished, ToolCallStarted
from handwork.server.desk import Desk
from handwork.server.exchange import Exchange
from handwork.store.sqlite import Store
from tests.server.clients import MODES, Progress, connected, events_of, text_of
from tests.server.conftest import MakeHouse
from tests.server.watching import sleeping, until
from tests.support.strict_server import StrictServer

both_eras = pytest.mark.parametrize("mode", MODES)


@both_eras
async def test_all_tools_are_listed_with_their_schemas_and_what_they_may_do(make_house: MakeHouse, mode: str) -> None:
    async with connected(make_house(), mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["bash", "python_execute", "str_replace_editor", "search_files", "planning", "run_task"]
    assert "command" in tools["bash"].input_schema["properties"]
    hints = {name: tool.annotations for name, tool in tools.items()}
    assert [name for name, each in hints.items() if each and each.read_only_hint] == ["search_files"]
    assert [name for name, each in hints.items() if each and not each.destructive_hint] == ["search_files", "planning"]


@both_eras
async def test_only_the_tools_that_were_named_are_served(make_house: MakeHouse, mode: str) -> None:
    async with connected(make_house(["search_files", "bash"]), mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search_files", "bash"]
        for name in ("python_execute", "run_task"):
            refused = await client.call_tool(name, {"code": "1", "task": "x"})
            assert refused.is_error
            assert text_of(refused).startswith(f"Error: Unknown tool '{name}'; ")


@both_eras
async def test_calls_share_one_session_with_its_shell_and_its_python(make_house: MakeHouse, mode: str) -> None:
    async with connected(make_house(), mode) as client:
        await client.call_tool("bash", {"command": "mkdir -p a && cd a && export GREETING=hello && echo x > f.txt"})
        assert text_of(await client.call_tool("bash", {"command": "echo $GREETING"})) == "hello\n"
        await client.call_tool("python_execute", {"code": "n = 41"})
        assert text_of(await client.call_tool("python_execute", {"code": "n + 1"})).strip() == "42"
        seen = await client.call_tool("str_replace_editor", {"command": "view", "path": "a/f.txt"})
        assert "x" in text_of(seen)
        found = await client.call_tool("search_files", {"query": "f.txt", "kind": "name"})
        assert "a/f.txt" in text_of(found)


@both_eras
async def test_what_goes_wrong_in_a_call_is_an_error_with_our_words(make_house: MakeHouse, mode: str) -> None:
    async with connected(make_house(), mode) as client:
        unknown = await client.call_tool("bsh", {})
        unfit = await client.call_tool("bash", {"comand": "ls"})
        traceback = await client.call_tool("python_execute", {"code": "1/0"})
        missing = await client.call_tool("str_replace_editor", {"command": "view", "path": "nowhere"})
        status = await client.call_tool("bash", {"command": "exit 3"})
    assert [each.is_error for each in (unknown, unfit, traceback, missing)] == [True] * 4
    assert text_of(unknown) == "Error: Unknown tool 'bsh'; did you mean bash?"
    assert "unknown parameter 'comand' (did you mean 'command'?)" in text_of(unfit)
    assert "ZeroDivisionError" in text_of(traceback)
    assert "nowhere" in text_of(missing)
    assert not status.is_error, "a command's own status is shown and is no error of the tool"


@both_eras
async def test_a_picture_is_an_image_and_a_long_output_a_file_that_can_be_read(
    make_house: MakeHouse, mode: str
) -> None:
    draw = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"
    async with connected(make_house(), mode) as client:
        drawn = await client.call_tool("python_execute", {"code": draw})
        assert [block.mime_type for block in drawn.content if block.type == "image"] == ["image/png"]
        long = await client.call_tool("bash", {"command": "seq 20000"})
        assert len(text_of(long)) < 11_000
        (link,) = [block for block in long.content if block.type == "resource_link"]
        (whole,) = (await client.read_resource(link.uri)).contents
        assert getattr(whole, "text", "").splitlines()[-1] == "20000"
        assert [each.uri for each in (await client.list_resources()).resources][-1] == link.uri


@both_eras
async def test_no_file_can_be_read_that_no_answer_has_linked_to(make_house: MakeHouse, mode: str, home: Path) -> None:
    secret = home / "secret"
    secret.write_text("key")
    async with connected(make_house(), mode) as client:
        for uri in (secret.as_uri(), "file:///etc/passwd", "file:///"):
            with pytest.raises(Exception, match="no resource"):
                await client.read_resource(uri)


@both_eras
async def test_output_is_told_while_a_call_runs(make_house: MakeHouse, mode: str) -> None:
    told = Progress()
    async with connected(make_house(), mode) as client:
        slow = "for i in 1 2 3; do echo line $i; sleep 0.3; done"
        await client.call_tool("bash", {"command": slow}, progress_callback=told)
    assert "line 1" in "\n".join(told)
    assert told.numbers == sorted(set(told.numbers)), "progress has to grow"


@both_eras
async def test_a_cancelled_call_ends_with_all_that_it_started(
    make_house: MakeHouse, mode: str, workspace: Path
) -> None:
    house = make_house()
    async with connected(house, mode) as client:
        await client.call_tool("bash", {"command": "echo ready"})
        hang = "echo begun > begun; sleep 271828 & sleep 271828; echo late > late"
        call = asyncio.create_task(client.call_tool("bash", {"command": hang}))
        await until(lambda: (workspace / "begun").exists())
        call.cancel()
        await asyncio.wait({call})
        await until(lambda: not sleeping("271828"))
        assert text_of(await client.call_tool("bash", {"command": "echo alive"})).startswith("alive\n")
    assert not (workspace / "late").exists()
    assert "interrupted" in [event.ending for event in events_of(house) if isinstance(event, ToolCallFinished)]


@both_eras
async def test_calls_run_together_unless_they_are_in_each_others_way(make_house: MakeHouse, mode: str) -> None:
    async with connected(make_house(), mode) as client:
        commands = [f"sleep 0.2; echo {n} >> order" for n in range(3)]
        await asyncio.gather(*(client.call_tool("bash", {"command": command}) for command in commands))
        assert text_of(await client.call_tool("bash", {"command": "cat order"})) == "0\n1\n2\n"
        write = client.call_tool("bash", {"command": "sleep 0.5; echo written > file"})
        read = client.call_tool("str_replace_editor", {"command": "view", "path": "file"})
        _, seen = await asyncio.gather(write, read)
        assert "written" in text_of(seen), "what a command may change is looked at after it"
        slow = asyncio.create_task(client.call_tool("bash", {"command": "sleep 1.5"}))
        began = time.monotonic()
        await client.call_tool("planning", {"command": "list"})
        assert time.monotonic() - began < 1.2, "a plan of one's own waits for no command"
        assert not slow.done()
        await slow


@both_eras
async def test_the_policy_holds_for_callers_too(make_house: MakeHouse, mode: str, workspace: Path) -> None:
    house = make_house(policy={"rules": ["deny run rm *"]})
    async with connected(house, mode) as client:
        denied = await client.call_tool("bash", {"command": "touch kept; rm kept"})
        assert denied.is_error
        assert text_of(denied).startswith("Not executed: denied by the policy: ")
    read_only = make_house(policy={"approve": "read-only"})
    async with connected(read_only, mode) as client:
        assert (await client.call_tool("bash", {"command": "touch never"})).is_error
        assert not (await client.call_tool("search_files", {"query": "x"})).is_error
    assert not (workspace / "kept").exists()
    assert not (workspace / "never").exists()


@both_eras
async def test_the_sandbox_holds_for_callers_too(make_house: MakeHouse, mode: str, home: Path) -> None:
    (home / "secret").write_text("do not tell")
    async with connected(make_house(), mode) as client:
        out = text_of(await client.call_tool("bash", {"command": f"cat {home}/secret; env; cat /etc/shadow"}))
    assert "do not tell" not in out
    assert "root:" not in out


@both_eras
async def test_the_journal_has_each_call_before_its_effect_and_names_the_client(
    make_house: MakeHouse, mode: str
) -> None:
    house = make_house()
    async with connected(house, mode) as client:
        await client.call_tool("bash", {"command": "echo hi"})
    events = events_of(house)
    kinds = [type(event) for event in events]
    assert kinds == [RunStarted, ToolCallStarted, ToolCallFinished, RunFinished]
    assert {event.agent for event in events} == {"mcp:mcp-0.1.0"}
    assert [event.seq for event in events] == [1, 2, 3, 4]


async def test_a_key_of_ours_is_masked_in_what_a_client_gets(
    make_house: MakeHouse, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-123456")
    (workspace / "found").write_text("the key is sk-very-secret-123456")
    async with connected(make_house()) as client:
        assert "sk-very-secret" not in text_of(await client.call_tool("bash", {"command": "cat found"}))


async def test_two_clients_share_nothing_but_the_workspace(make_house: MakeHouse) -> None:
    desk = Desk(make_house())
    try:
        one, other = desk.guest("one", "one"), desk.guest("other", "other")
        exchange = Exchange(can_ask=False)
        await one.begin("bash", {"command": "export SECRET=1; cd /tmp; touch /tmp/mine"}, exchange)
        answer = await other.begin("bash", {"command": "echo [$SECRET]; ls /tmp/mine; pwd"}, exchange)
        assert answer.text.startswith("[]\n")
        assert "cannot access '/tmp/mine'" in answer.text
        assert f"\n{desk.house.workspace}\n" in answer.text
    finally:
        await desk.close()


async def test_a_silent_client_costs_nothing_and_finds_its_session_again(make_house: MakeHouse) -> None:
    desk = Desk(make_house())
    exchange = Exchange(can_ask=False)
    guest = desk.guest("one", "one")
    await guest.begin("bash", {"command": "sleep 314159 &"}, exchange)
    assert sleeping("314159")
    await guest.rest()
    assert not sleeping("314159")
    assert (await guest.begin("bash", {"command": "echo back"}, exchange)).text.startswith("back\n")
    await desk.close()
    assert len({event.session_id for event in events_of(desk.house)}) == 1


async def test_so_many_calls_of_a_client_are_open_at_most(make_house: MakeHouse) -> None:
    desk = Desk(make_house())
    guest, exchange = desk.guest("one", "one"), Exchange(can_ask=False)
    calls = [guest.begin("bash", {"command": "sleep 99"}, exchange) for _ in range(32)]
    refused = await guest.begin("bash", {"command": "echo"}, exchange)
    assert refused.text.startswith("Error: 32 calls are open already")
    for number in range(1, 4):
        for _ in range(32):
            guest.begin("bash", {"command": "sleep 99"}, exchange, f"client {number}")
    refused = await guest.begin("bash", {"command": "echo"}, exchange, "client 4")
    assert refused.text.startswith("Error: 128 calls of all clients are open already")
    await desk.close()
    assert all(call.cancelled() for call in calls)


@pytest.mark.parametrize("value", ["\ud800", "\0", "a" * 300_000, float("nan"), 10**400, [[]], {"a": None}, True])
async def test_odd_arguments_are_answered_and_the_next_call_works(make_house: MakeHouse, value: Any) -> None:
    desk = Desk(make_house())
    guest, exchange = desk.guest("one", "\x1b[31m\u202e"), Exchange(can_ask=False)
    await guest.begin("bash", {"command": value}, exchange)
    assert (await guest.begin("planning", {"command": "list"}, exchange)).is_error is False
    await desk.close()
    assert {event.agent for event in events_of(desk.house)} == {"mcp:31m"}


async def test_what_a_client_calls_is_not_the_conversation_that_continue_goes_on_with(make_house: MakeHouse) -> None:
    async with StrictServer(["It is 42."]) as model:
        house = make_house(llm={"model": "openai:any", "base_url": model.url})
        async with connected(house) as client:
            answer = await client.call_tool("run_task", {"task": "Find it."})
            await client.call_tool("bash", {"command": "echo"})
    store = Store.open(house.settings.store_path, synchronous=house.settings.store.synchronous)
    try:
        assert store.latest(str(house.workspace)) == answer.structured_content["session"]
        assert next(info.agent for info in store.sessions()) == "mcp:mcp-0.1.0"
    finally:
        store.close()
