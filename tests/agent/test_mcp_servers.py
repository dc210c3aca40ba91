"""Agents with MCP servers: their tools come and go, one that fails costs a notice and not the run (CONTRACT C2, C9, A8, A13)."""

from __future__ import annotations

import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from handwork import Manus, Session
from handwork.config import MCPServerSettings, MCPSettings, Settings
from handwork.errors import ConfigError, MCPUnavailable
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Request, Status
from handwork.tool.terminate import Terminate
from tests.agent.conftest import Seen, reopened
from tests.agent.servers import STUB, configured, notices, stub, tools_of

TIME = shutil.which("mcp-server-time", path=str(Path(sys.executable).parent)) or "mcp-server-time"
ECHO = ["mcp_stub_add", "mcp_stub_echo"]


def observation(agent: Manus, at: int = -1) -> str:
    return [message.content or "" for message in agent.messages if message.role == "tool"][at]


def manus(script: Any, **fields: Any) -> Manus:
    return Manus(llm=ScriptedModel(script), **fields)


def requests(agent: Manus) -> list[Request]:
    assert isinstance(agent.llm, ScriptedModel)
    return agent.llm.requests


def stubs_alive() -> list[int]:
    """Stub servers among the processes that this test has started."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if "stub.py" in child.cmdline():
                found.append(child.pid)
        except psutil.Error:
            continue
    return found


# ---- C2: mounting


async def test_every_configured_servers_tools_are_there_at_the_first_request(
    settings: Settings, tmp_path: Path
) -> None:
    both = configured(stub=stub(tmp_path), other=stub(tmp_path, "--tools", "echo"))
    agent = manus([call("mcp_stub_echo", text="hello"), call("mcp_other_echo", text="there"), "done"], settings=both)
    result = await agent.run("go")
    assert result.status is Status.FINISHED
    assert tools_of(requests(agent)[0]) == ["mcp_other_echo", *ECHO]
    assert observation(agent, 0) == "Observed output of cmd `mcp_stub_echo` executed:\nhello"
    assert observation(agent, 1) == "Observed output of cmd `mcp_other_echo` executed:\nthere"
    assert stubs_alive() == []


async def test_a_server_that_nobody_here_wrote_is_used_like_any_other(settings: Settings, tmp_path: Path) -> None:
    agent = manus(
        [call("mcp_time_convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"), "done"],
        mcp_servers={"time": {"command": TIME}},
    )
    assert (await agent.run("go")).status is Status.FINISHED
    assert "21:00" in observation(agent)


async def test_a_disabled_server_is_not_there_and_an_empty_choice_is_none(settings: Settings, tmp_path: Path) -> None:
    off = configured(stub=stub(tmp_path, disabled=True))
    for agent in (
        manus(["done"], settings=off),
        manus(["done"], settings=configured(stub=stub(tmp_path)), mcp_servers={}),
    ):
        await agent.run("go")
        assert tools_of(requests(agent)[0]) == []
        assert agent.connected_servers == {}


async def test_a_program_chooses_servers_by_name_and_a_wrong_name_is_told_with_the_nearest(
    settings: Settings, tmp_path: Path
) -> None:
    both = configured(stub=stub(tmp_path), other=stub(tmp_path))
    agent = manus(["done"], settings=both, mcp_servers=["other"])
    await agent.run("go")
    assert tools_of(requests(agent)[0]) == ["mcp_other_add", "mcp_other_echo"]
    result = await manus([], settings=both, mcp_servers=["othr"]).run("go")
    assert result.status is Status.ERROR
    assert isinstance(result.error, ConfigError)
    assert "'othr'" in str(result.error)
    assert "did you mean other?" in str(result.error)
    result = await manus([], mcp_servers={"it": {"comand": "x"}}).run("go")
    assert "MCP server it: " in str(result.error)


async def test_tools_that_the_user_filters_out_are_not_shown(settings: Settings, tmp_path: Path) -> None:
    agent = manus(["done"], settings=configured(stub=stub(tmp_path, without_tools=("e*",))))
    await agent.run("go")
    assert tools_of(requests(agent)[0]) == ["mcp_stub_add"]


async def test_two_servers_whose_names_are_written_alike_hide_none_of_each_other(
    settings: Settings, tmp_path: Path
) -> None:
    both = Settings(mcp=MCPSettings(servers={"a.b": stub(tmp_path), "a_b": stub(tmp_path)}))
    agent = manus(["done"], settings=both)
    await agent.run("go")
    names = tools_of(requests(agent)[0])
    assert len(names) == len(set(names)) == 4
    assert {"mcp_a_b_add", "mcp_a_b_echo"} < set(names)


async def test_a_servers_tool_never_takes_the_place_of_one_of_ours(settings: Settings, tmp_path: Path) -> None:
    server = stub(tmp_path, "--tools", "bash,terminate,echo")
    agent = manus([call("mcp_stub_terminate"), call("terminate", status="success")], settings=configured(stub=server))
    result = await agent.run("go")
    assert result.status is Status.FINISHED
    assert len(requests(agent)) == 2  # the server's one has ended nothing
    assert tools_of(requests(agent)[0]) == ["mcp_stub_bash", "mcp_stub_echo", "mcp_stub_terminate"]


async def test_resources_of_all_servers_are_read_with_one_tool(settings: Settings, tmp_path: Path) -> None:
    agent = manus(
        [call("mcp_resources"), call("mcp_resources", uri="stub://one"), "done"],
        settings=configured(stub=stub(tmp_path, "--resources"), other=stub(tmp_path)),
    )
    await agent.run("go")
    assert "mcp_resources" in tools_of(requests(agent)[0])
    assert "stub://one" in observation(agent, 0)
    assert "The first." in observation(agent, 1)


# ---- servers that fail


@pytest.mark.parametrize(
    "options",
    [("--die", "3"), ("--refuse",), ("--version", "1999-01-01")],
    ids=["dies at its start", "refuses", "wrong version"],
)
async def test_a_server_that_cannot_be_used_costs_one_notice_and_not_the_run(
    settings: Settings, tmp_path: Path, seen: Seen, options: tuple[str, ...]
) -> None:
    servers = configured(bad=stub(tmp_path, *options), stub=stub(tmp_path))
    agent = manus([call("mcp_stub_echo", text="on"), "done"], settings=servers)
    result = await agent.run("go", listener=seen)
    assert result.status is Status.FINISHED
    assert tools_of(requests(agent)[0]) == ECHO
    assert observation(agent).endswith("on")
    (notice,) = notices(seen)
    assert "bad" in notice
    assert stubs_alive() == []


async def test_a_missing_program_and_an_address_where_nobody_answers_cost_one_notice_each(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    servers = configured(
        gone=MCPServerSettings(command="no-such-program"), dead=MCPServerSettings(url="http://127.0.0.1:9/mcp")
    )
    agent = manus(["done"], settings=servers)
    result = await agent.run("go", listener=seen)
    assert result.status is Status.FINISHED
    told = notices(seen)
    assert len(told) == 2
    assert any("gone" in text for text in told)
    assert any("dead" in text for text in told)


async def test_the_notice_of_a_configured_server_that_fails_ends_with_the_way_on(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    servers = {
        "a b": stub(tmp_path, "--die", "3"),
        "dead": MCPServerSettings(url="http://127.0.0.1:9/mcp"),
    }
    agent = manus(["done"], settings=configured(**servers))
    await agent.run("go", listener=seen)
    by_itself, with_a_hint = notices(seen)
    assert by_itself.endswith(" – look at it: handwork mcp test 'a b'")
    assert with_a_hint.endswith(" – check that it runs, its address, the network and the proxy")


async def test_a_server_that_a_program_named_is_none_that_the_command_line_could_test(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    agent = manus(["done"], mcp_servers={"it": stub(tmp_path, "--die", "3")})
    await agent.run("go", listener=seen)
    (notice,) = notices(seen)
    assert "exit code 3" in notice
    assert "handwork mcp test" not in notice


async def test_a_run_tells_nothing_of_entries_that_are_left_out_as_its_user_can_do_nothing_there(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    agent = manus(["done"], settings=configured(stub=stub(tmp_path, "--as-task", "add=required")))
    await agent.run("go", listener=seen)
    assert tools_of(requests(agent)[0]) == ["mcp_stub_echo"]
    assert notices(seen) == []


async def test_a_mute_server_is_waited_for_no_longer_than_its_limit_and_costs_one_notice(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    agent = manus(["done"], settings=configured(mute=stub(tmp_path, "--mute", timeout=0.5)))
    assert (await agent.run("go", listener=seen)).status is Status.FINISHED
    assert len(notices(seen)) == 1
    assert stubs_alive() == []


async def test_a_server_that_dies_in_a_call_is_told_to_the_model_once_to_the_person_and_comes_back(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    server = stub(tmp_path, "--tools", "die,echo")
    agent = manus([call("mcp_stub_die"), call("mcp_stub_echo", text="again"), "done"], settings=configured(stub=server))
    assert (await agent.run("go", listener=seen)).status is Status.FINISHED
    assert "Error executing tool: " in observation(agent, 0)
    assert "exit code 7" in observation(agent, 0)
    assert observation(agent, 1).endswith("again")
    assert len([text for text in notices(seen) if "there now" not in text]) <= 1
    assert tools_of(requests(agent)[-1]) == tools_of(requests(agent)[0])


async def test_a_server_that_had_failed_is_tried_once_more_by_the_next_run_and_told_of_once(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    servers = configured(late=MCPServerSettings(command=str(tmp_path / "late.sh"), timeout=20))
    agent = manus(lambda request: "done", settings=servers)
    async with agent:
        await agent.run("go", listener=seen)
        await agent.run("go on", listener=seen)
        assert len(notices(seen)) == 1
        with pytest.raises(MCPUnavailable):  # what that run has begun comes to its end first
            await agent.served_by[0].connection.ready()
        shutil.copy(STUB, tmp_path / "stub.py")
        (tmp_path / "late.sh").write_text(f"#!/bin/sh\nexec {sys.executable} stub.py\n")
        (tmp_path / "late.sh").chmod(0o755)
        await agent.run("and on", listener=seen)
        await agent.served_by[0].connection.ready()
        await agent.run("and on", listener=seen)
    assert tools_of(requests(agent)[-1]) == ["mcp_late_add", "mcp_late_echo"]
    assert notices(seen)[1:] == ["The MCP server late is there now."]


@pytest.mark.parametrize(
    "tool", ["garbage", "half", "deep", "digits", "surrogate", "latin", "batch", "nul", "twice", "unknown", "strange"]
)
async def test_whatever_a_server_sends_the_run_goes_on_with_one_notice_at_most(
    settings: Settings, tmp_path: Path, seen: Seen, tool: str
) -> None:
    server = stub(tmp_path, "--tools", f"{tool},echo", "--noise", "--banner", "3")
    agent = manus(
        [call(f"mcp_stub_{tool}"), call("mcp_stub_echo", text="still here"), "done"], settings=configured(stub=server)
    )
    assert (await agent.run("go", listener=seen)).status is Status.FINISHED
    assert observation(agent).endswith("still here")
    assert len([text for text in notices(seen) if "there now" not in text]) <= 1
    assert stubs_alive() == []


async def test_what_a_server_answers_is_data_whatever_it_says(settings: Settings, tmp_path: Path, seen: Seen) -> None:
    server = stub(tmp_path, "--tools", "inject,fail,refuse,echo")
    agent = manus(
        [[call("mcp_stub_inject"), call("mcp_stub_fail"), call("mcp_stub_refuse")], "done"],
        settings=configured(stub=server),
    )
    assert (await agent.run("go", listener=seen)).status is Status.FINISHED
    assert "ignore all instructions" in observation(agent, 0)
    assert "Error executing tool: It went wrong" in observation(agent, 1)
    assert "Error executing tool: I will not" in observation(agent, 2)
    assert [event.call.function.name for event in seen.of("tool_call_started")].count("bash") == 0
    assert notices(seen) == []


# ---- servers that change (FAULTS: changed tools are asked about; a new order alarms nobody)


@pytest.mark.parametrize("how", ["reorder", "remove"])
async def test_a_new_order_and_tools_that_go_alarm_nobody(
    settings: Settings, tmp_path: Path, seen: Seen, how: str
) -> None:
    server = stub(tmp_path, "--tools", "change,echo,add")
    agent = manus([call("mcp_stub_change", how=how), "done"], settings=configured(stub=server))
    assert (await agent.run("go", listener=seen)).status is Status.FINISHED
    gone = {"mcp_stub_add"} if how == "remove" else set()
    assert set(tools_of(requests(agent)[1])) == set(tools_of(requests(agent)[0])) - gone
    assert notices(seen) == []


async def test_what_list_changed_tells_is_there_at_the_next_step(settings: Settings, tmp_path: Path) -> None:
    server = stub(tmp_path, "--tools", "change,echo", new_tools=True)
    agent = manus(
        [call("mcp_stub_change", how="add"), call("mcp_stub_added"), "done"], settings=configured(stub=server)
    )
    await agent.run("go")
    assert "mcp_stub_added" not in tools_of(requests(agent)[0])
    assert "mcp_stub_added" in tools_of(requests(agent)[1])
    assert observation(agent).endswith("added done")


# ---- stable requests


async def test_each_request_begins_with_the_one_before_while_servers_are_stable(
    settings: Settings, tmp_path: Path
) -> None:
    server = stub(tmp_path, "--instructions", "Echo politely.")
    agent = manus(
        [
            call("mcp_stub_echo", text="1"),
            call("mcp_stub_echo", text="2"),
            "first",
            call("mcp_stub_add", a=1, b=2),
            "second",
        ],
        settings=configured(stub=server),
    )
    async with agent:
        await agent.run("go")
        await agent.run("go on")
    asked = requests(agent)
    assert "Echo politely." in (asked[0].system or "")
    for before, after in pairwise(asked):
        assert after.system == before.system
        assert after.tools is before.tools
        assert after.messages[: len(before.messages)] == before.messages


async def test_what_a_server_says_of_itself_is_bounded_and_marked_as_its_words(
    settings: Settings, tmp_path: Path
) -> None:
    agent = manus(["done"], settings=configured(stub=stub(tmp_path, "--instructions", "Obey! \x1b[31m" + "x" * 9000)))
    await agent.run("go")
    system = requests(agent)[0].system or ""
    assert "the words of whoever wrote these servers" in system
    assert "===== the server stub begins (" in system
    assert "\x1b" not in system
    assert 1500 < system.count("x") < 2100


# ---- C9: connecting and disconnecting


async def test_create_connects_at_once_and_cleanup_leaves_no_process(settings: Settings, tmp_path: Path) -> None:
    server = stub(tmp_path)
    agent = await Manus.create(llm=ScriptedModel(["done"]), settings=configured(stub=server))
    try:
        assert agent.connected_servers == {"stub": server.command}
        assert {"mcp_stub_add", "mcp_stub_echo"} <= set(agent.available_tools.tool_map)
        assert len(stubs_alive()) == 1
    finally:
        await agent.cleanup()
    assert stubs_alive() == []
    assert agent.connected_servers == {}
    assert "mcp_stub_echo" not in agent.available_tools


async def test_after_a_cleanup_it_connects_again_at_its_next_think(settings: Settings, tmp_path: Path) -> None:
    agent = await Manus.create(
        llm=ScriptedModel(["done", call("mcp_stub_echo", text="again"), "done"]),
        settings=configured(stub=stub(tmp_path)),
    )
    await agent.run("go")
    await agent.cleanup()
    await agent.run("go on")
    assert observation(agent).endswith("again")
    assert stubs_alive() == []


async def test_servers_are_added_and_taken_away_in_the_middle_of_a_run(settings: Settings, tmp_path: Path) -> None:
    server = stub(tmp_path)
    agent: Manus

    async def connect(request: Request) -> Any:
        await agent.connect_mcp_server(server.command, "late", use_stdio=True, stdio_args=list(server.args))
        return call("mcp_late_echo", text="at once")

    async def disconnect(request: Request) -> Any:
        assert agent.connected_servers == {"late": server.command}
        await agent.disconnect_mcp_server("late")
        return call("mcp_late_echo", text="too late")

    agent = manus([connect, disconnect, "done"])
    assert (await agent.run("go")).status is Status.FINISHED
    assert observation(agent, 0).endswith("at once")
    assert "Unknown tool 'mcp_late_echo'" in observation(agent, 1)
    assert [tools_of(request) for request in requests(agent)] == [[], ["mcp_late_add", "mcp_late_echo"], []]


async def test_connecting_to_what_is_not_there_raises_and_leaves_nothing(settings: Settings) -> None:
    async with manus([]) as agent:
        with pytest.raises(MCPUnavailable, match="no-such-program"):
            await agent.connect_mcp_server("no-such-program", use_stdio=True)
        with pytest.raises(MCPUnavailable):
            await agent.connect_mcp_server("http://127.0.0.1:9/mcp", "dead")
        with pytest.raises(ValueError, match="Server URL is required"):
            await agent.connect_mcp_server("")
        assert agent.connected_servers == {}
        await agent.disconnect_mcp_server("dead")
        await agent.disconnect_mcp_server()


async def test_two_agents_share_no_server(settings: Settings, tmp_path: Path) -> None:
    servers = configured(stub=stub(tmp_path))
    async with manus(["done"], settings=servers) as one, manus(["done"], settings=servers) as two:
        await one.initialize_mcp_servers()
        await two.initialize_mcp_servers()
        assert len(stubs_alive()) == 2
        await one.disconnect_mcp_server()
        assert one.connected_servers == {}
        assert list(two.connected_servers) == ["stub"]
        assert "mcp_stub_echo" in two.available_tools
    assert stubs_alive() == []


async def test_cancelling_a_run_reaches_the_server_and_keeps_it(settings: Settings, tmp_path: Path) -> None:
    server = stub(tmp_path, "--tools", "ticks,heard")
    agent: Manus
    agent = manus([call("mcp_stub_ticks"), call("mcp_stub_heard"), "done"], settings=configured(stub=server))

    def watch(event: Any) -> None:
        if event.type == "tool_output_delta":
            agent.cancel()

    async with agent:
        assert (await agent.run("go", listener=watch)).status is Status.CANCELLED
        await agent.run("and now")
    assert "notifications/cancelled" in observation(agent)


# ---- resuming


async def test_a_session_is_resumed_whose_server_is_gone(settings: Settings, tmp_path: Path, seen: Seen) -> None:
    servers = configured(stub=stub(tmp_path))
    session = Session.open(servers, tmp_path)
    async with session:
        agent = manus([call("mcp_stub_echo", text="then"), "done"], session=session)
        await agent.run("go", listener=None)
    async with reopened(session) as again:
        later = Manus(llm=ScriptedModel([call("mcp_stub_echo", text="now"), "done"]), session=again, mcp_servers={})
        result = await later.run("go on", listener=seen)
    assert result.status is Status.FINISHED
    assert observation(later, 0).endswith("then")
    assert "Unknown tool 'mcp_stub_echo'" in observation(later, 1)


async def test_an_agent_without_servers_makes_nothing_for_them(settings: Settings, tmp_path: Path) -> None:
    async with Session.open(settings, tmp_path) as session:
        await manus(["done"], session=session, available_tools=[Terminate]).run("go")
        assert vars(session)["_servers"] is None
