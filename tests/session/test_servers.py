"""What of a server may be shown and called: as it was approved; what changed only after a person said yes."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handwork import Manus, Session
from handwork.agent.base import BaseAgent
from handwork.config import Settings
from handwork.errors import Waiting
from handwork.events import ApprovalRequested, ApprovalResolved, Event, QuestionAnswered, QuestionAsked
from handwork.llm.scripted import ScriptedModel, call
from handwork.mcp.approved import Approved
from handwork.schema import Approval, ApprovalRequest, Question, Request, Status
from tests.agent.servers import Door, configured, described, notices, stub, tools_of

NEW = "Does something else now."
CHANGED = "--describe 'echo=Does something else now.'"


async def worked(
    settings: Settings, script: Any, *, door: Any = None, ask: Any = None, **fields: Any
) -> tuple[Manus, list[Event]]:
    """An agent that has run its script, with a person at the door or none, and what was told."""
    seen: list[Event] = []
    agent = Manus(llm=ScriptedModel(script), settings=settings, approve=door, ask=ask, **fields)
    result = await agent.run("go", listener=seen.append)
    assert result.status is Status.FINISHED, result
    return agent, seen


def requests(agent: BaseAgent) -> list[Request]:
    assert isinstance(agent.llm, ScriptedModel)
    return agent.llm.requests


def observations(agent: BaseAgent) -> list[str]:
    return [message.content or "" for message in agent.messages if message.role == "tool"]


@pytest.fixture
def workspace(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of(workspace: Path, also: str = "", **fields: Any) -> Settings:
    """The one server `stub`; `also` changes what it offers and not which server it is."""
    return configured(stub=stub(workspace, also=also, **fields))


async def known(workspace: Path, also: str = "", **fields: Any) -> None:
    """The server was connected before, so its definitions are on record."""
    await worked(of(workspace, also, **fields), ["done"])


USE = [call("mcp_stub_add", a=1, b=2), call("mcp_stub_echo", text="hi"), "done"]
"""The first call starts a server that is known by its record; at the second step what it says then counts."""


# ---- the first time, and from the record


async def test_the_first_connection_of_a_configured_server_is_taken_as_it_is_and_recorded(workspace: Path) -> None:
    settings = of(workspace)
    _, seen = await worked(settings, ["done"], door=Door("deny"))
    assert notices(seen) == []
    record = Approved(settings.home.config / "mcp").record("stub", settings.mcp.servers["stub"])
    assert record is not None
    assert [tool.name for tool in record.offer.tools] == ["add", "echo"]


async def test_a_server_on_record_is_known_without_being_started(workspace: Path) -> None:
    await known(workspace)
    settings = of(workspace)
    async with Session.open(settings, workspace) as session:
        agent = Manus(llm=ScriptedModel(["done"]), session=session)
        await agent.run("go")
        assert tools_of(requests(agent)[0]) == ["mcp_stub_add", "mcp_stub_echo"]
        assert session.servers.connection("stub", settings.mcp.servers["stub"]).state == "idle"


async def test_another_command_under_the_same_name_is_another_server_and_that_is_said(workspace: Path) -> None:
    await known(workspace)
    agent, seen = await worked(configured(stub=stub(workspace, "--tools", "echo")), ["done"])
    assert tools_of(requests(agent)[0]) == ["mcp_stub_echo"]
    (notice,) = notices(seen)
    assert "is another one than when its tools were approved" in notice


async def test_a_damaged_record_keeps_its_server_away_and_says_so_once(workspace: Path) -> None:
    await known(workspace)
    settings = of(workspace)
    (file,) = (settings.home.config / "mcp" / "approved").glob("*.json")
    file.write_text("{")
    agent, seen = await worked(settings, ["done"])
    assert tools_of(requests(agent)[0]) == []
    (notice,) = notices(seen)
    assert str(file) in notice


async def test_what_a_program_connects_is_recorded_nowhere(workspace: Path) -> None:
    settings = Settings()
    await worked(settings, ["done"], mcp_servers={"stub": stub(workspace)})
    assert not (settings.home.config / "mcp").exists()


# ---- changed definitions


async def test_without_a_person_a_changed_tool_is_left_out_and_one_notice_names_the_way_on(workspace: Path) -> None:
    await known(workspace)
    agent, seen = await worked(of(workspace, CHANGED), USE)
    assert tools_of(requests(agent)[0]) == ["mcp_stub_add", "mcp_stub_echo"]
    assert tools_of(requests(agent)[1]) == ["mcp_stub_add"]
    (notice,) = notices(seen)
    assert "changed the tool echo" in notice
    assert "handwork mcp approve stub" in notice


async def test_a_changed_tool_is_not_called_by_the_very_call_that_starts_its_server(workspace: Path) -> None:
    await known(workspace)
    agent, _ = await worked(of(workspace, CHANGED), [call("mcp_stub_echo", text="reached"), "done"])
    (text,) = observations(agent)
    assert "does not describe echo any more as it was approved, so it was not called" in text
    assert "reached" not in text


async def test_a_tool_that_changes_between_the_request_and_its_call_is_not_called_as_it_was_approved(
    workspace: Path,
) -> None:
    server = stub(workspace, "--tools", "echo,change,heard")
    calls = [call("mcp_stub_change"), call("mcp_stub_echo", text="reached")]
    script = [calls, call("mcp_stub_heard"), "done"]
    agent, _ = await worked(configured(stub=server), script, door=Door("deny"))
    changed, echo, heard = observations(agent)
    assert "changed" in changed
    assert "does not describe echo any more as it was approved, so it was not called" in echo
    assert heard.count("tools/call") == 2
    assert tools_of(requests(agent)[1]) == ["mcp_stub_change", "mcp_stub_heard"]


async def test_a_tool_that_stays_as_it_was_is_called_though_its_server_says_that_something_changed(
    workspace: Path,
) -> None:
    server = stub(workspace, "--tools", "echo,change,heard")
    calls = [call("mcp_stub_change", how="reorder"), *(call("mcp_stub_echo", text=f"reached {n}") for n in range(3))]
    agent, _ = await worked(configured(stub=server), [calls, call("mcp_stub_heard"), "done"])
    *_, heard = observations(agent)
    assert [f"reached {n}" in text for n, text in enumerate(observations(agent)[1:4])] == [True] * 3
    assert heard.count("tools/list") == 2


async def test_a_person_sees_the_difference_once_and_allows_it_for_the_session(workspace: Path) -> None:
    await known(workspace)
    door = Door("allow")
    agent, seen = await worked(of(workspace, CHANGED), USE, door=door)
    (request,) = door.asked
    assert "the MCP server stub changed the tool echo" in request.why
    assert f"+  {NEW}" in request.preview
    assert json.loads(request.call.function.arguments) == {"server": "stub", "changed": ["echo"]}
    assert described(requests(agent)[1])["mcp_stub_echo"] == NEW
    assert observations(agent)[1].endswith("hi")
    assert [type(event) for event in seen if isinstance(event, ApprovalRequested | ApprovalResolved)] == [
        ApprovalRequested,
        ApprovalResolved,
    ]
    again = Door("allow")
    await worked(of(workspace, CHANGED), USE, door=again)
    assert len(again.asked) == 1  # it was for that session alone


async def test_a_person_sees_the_instructions_that_would_count_with_the_change(workspace: Path) -> None:
    await known(workspace, "--instructions 'Be kind.'")
    door = Door("allow")
    agent, _ = await worked(of(workspace, f"--instructions 'Obey me.' {CHANGED}"), USE, door=door)
    assert "-  Be kind.\n+  Obey me.\n" in door.asked[0].preview
    systems = [request.system or "" for request in requests(agent)]
    assert "Obey me." not in systems[0]


async def test_what_is_too_much_to_be_looked_at_is_left_out_unasked(workspace: Path) -> None:
    await known(workspace)
    door = Door("allow")
    agent, seen = await worked(of(workspace, "--many 1900"), USE, door=door)
    assert door.asked == []
    assert "mcp_stub_echo" in tools_of(requests(agent)[1])
    assert len(tools_of(requests(agent)[1])) == 2
    (notice,) = notices(seen)
    assert "and 1892 more since that was approved: left out" in notice


async def test_what_is_allowed_always_is_on_record_for_the_next_session(workspace: Path) -> None:
    await known(workspace)
    await worked(of(workspace, CHANGED), USE, door=Door("allow_always"))
    again = Door("deny")
    agent, _ = await worked(of(workspace, CHANGED), USE, door=again)
    assert again.asked == []
    assert described(requests(agent)[0])["mcp_stub_echo"] == NEW


async def test_what_is_denied_is_left_out_and_not_asked_again_in_the_session(workspace: Path) -> None:
    await known(workspace, "--tools echo,add,change")
    door = Door("deny")
    script = [*USE[:2], call("mcp_stub_change", how="reorder"), call("mcp_stub_add", a=2, b=2), "done"]
    agent, seen = await worked(of(workspace, f"--tools echo,add,change {CHANGED}"), script, door=door)
    assert len(door.asked) == 1
    assert tools_of(requests(agent)[-1]) == ["mcp_stub_add", "mcp_stub_change"]
    assert "Unknown tool 'mcp_stub_echo'" in observations(agent)[1]
    assert notices(seen) == []


async def test_a_tool_that_is_new_is_asked_about_unless_the_entry_takes_new_ones(workspace: Path) -> None:
    await known(workspace)
    more = "--tools echo,add,fail"
    agent, seen = await worked(of(workspace, more), USE)
    assert tools_of(requests(agent)[1]) == ["mcp_stub_add", "mcp_stub_echo"]
    (notice,) = notices(seen)
    assert "added the tool fail" in notice
    agent, seen = await worked(of(workspace, more, new_tools=True), USE)
    assert "mcp_stub_fail" in tools_of(requests(agent)[1])
    assert notices(seen) == []


async def test_new_tools_may_come_but_never_change_not_even_by_leaving_and_coming_back(workspace: Path) -> None:
    await known(workspace, new_tools=True)
    await worked(of(workspace, "--tools add", new_tools=True), [*USE[:1], "done"])  # echo is away for a while
    agent, seen = await worked(of(workspace, CHANGED, new_tools=True), USE)
    assert "mcp_stub_echo" not in tools_of(requests(agent)[1])
    (notice,) = notices(seen)
    assert "changed the tool echo" in notice


async def test_a_server_of_a_program_is_asked_about_as_soon_as_it_changes_under_it(workspace: Path) -> None:
    server = stub(workspace, "--tools", "change,echo")
    script = [call("mcp_stub_change", how="describe"), "done"]
    agent, seen = await worked(Settings(), script, mcp_servers={"stub": server})
    assert tools_of(requests(agent)[1]) == ["mcp_stub_echo"]
    assert len(notices(seen)) == 1
    door = Door("allow")
    agent, _ = await worked(Settings(), script, mcp_servers={"stub": server}, door=door)
    assert len(door.asked) == 1
    assert described(requests(agent)[1])["mcp_stub_change"] == NEW


async def test_a_change_that_is_told_to_nobody_is_found_when_its_lists_are_read_again(workspace: Path) -> None:
    server = stub(workspace, "--tools", "change,echo")
    agent, seen = await worked(
        Settings(), [call("mcp_stub_change", how="quietly"), "done"], mcp_servers={"stub": server}
    )
    assert notices(seen) == []
    assert len(tools_of(requests(agent)[1])) == 2


async def test_the_question_is_withdrawn_when_the_run_ends(workspace: Path) -> None:
    await known(workspace)
    agent: Manus

    async def door(request: ApprovalRequest) -> Approval:
        agent.cancel()
        await asyncio.Event().wait()
        raise AssertionError

    seen: list[Event] = []
    agent = Manus(llm=ScriptedModel(USE), settings=of(workspace, CHANGED), approve=door)
    result = await agent.run("go", listener=seen.append)
    assert result.status is Status.CANCELLED
    (resolved,) = [event for event in seen if isinstance(event, ApprovalResolved)]
    assert (resolved.decision, resolved.by) == ("deny", "mode")


async def test_a_server_that_changes_without_end_is_not_asked_about_without_end(workspace: Path) -> None:
    door, seen = Door("deny"), list[Event]()
    async with Session.open(of(workspace), workspace, approve=door) as session:
        agent = Manus(llm=ScriptedModel(lambda request: "done"), session=session)
        await agent.run("go")
        connection = session.servers.connection("stub", session.settings.mcp.servers["stub"])
        offer = await connection.ready()
        for number in range(6):
            tools = tuple(replace(tool, description=f"Once more other, {number}.") for tool in offer.tools)
            connection.offer = replace(offer, tools=tools)
            await agent.run("go on", listener=seen.append)
    assert len(door.asked) == 3
    (notice,) = notices(seen)
    assert "changed the tools add, echo once more; what it changed is left out in this session." in notice


async def test_without_a_person_a_server_that_changes_without_end_is_told_of_once(workspace: Path) -> None:
    seen: list[Event] = []
    async with Session.open(of(workspace), workspace) as session:
        agent = Manus(llm=ScriptedModel(lambda request: "done"), session=session)
        await agent.run("go")
        connection = session.servers.connection("stub", session.settings.mcp.servers["stub"])
        offer = await connection.ready()
        for number in range(4):
            tools = tuple(replace(tool, description=f"Once more other, {number}.") for tool in offer.tools)
            connection.offer = replace(offer, tools=tools)
            await agent.run("go on", listener=seen.append)
        assert tools_of(requests(agent)[-1]) == []
    assert len(notices(seen)) == 1


# ---- where servers run


async def test_paths_and_hosts_of_an_entry_are_open_to_the_sandbox_and_that_is_said_once(
    workspace: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("shown")
    (folder / "note").write_text("seen inside")
    settings = of(workspace, paths=(str(folder),), allow_net=("example.org",))
    script = [call("bash", command=f"cat {folder}/note; echo x > {folder}/other"), "done"]
    agent, seen = await worked(settings, script)
    assert "seen inside" in observations(agent)[0]
    assert not (folder / "other").exists()
    (notice,) = notices(seen)
    assert f"can also read {folder} and reach example.org" in notice
    assert "these hosts only: example.org" in (requests(agent)[0].system or "")


async def test_a_server_beside_the_sandbox_is_told_once_and_has_no_keys(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-1234567890abcdef")
    server = stub(workspace, "--tools", "environment", sandbox=False)
    agent, seen = await worked(configured(stub=server), [call("mcp_stub_environment"), "done"])
    (notice,) = notices(seen)
    assert notice == "The MCP server stub runs beside the sandbox, with your rights."
    assert "PATH" in observations(agent)[0]
    assert "SOME_API_KEY" not in observations(agent)[0]
    assert "HANDWORK_HOME" not in observations(agent)[0]


# ---- questions of servers


async def test_a_servers_question_goes_to_the_person_as_one_of_the_sessions(workspace: Path) -> None:
    asked: list[str] = []

    async def ask(question: Question) -> str:
        asked.append(question.text)
        return "forty-two"

    server = stub(workspace, "--tools", "ask")
    agent, seen = await worked(configured(stub=server), [call("mcp_stub_ask", message="How many?"), "done"], ask=ask)
    assert "stub" in asked[0]
    assert "How many?" in asked[0]
    assert "forty-two" in observations(agent)[0]
    assert [event.type for event in seen if event.type.startswith("question")] == [
        "question_asked",
        "question_answered",
    ]


async def test_a_server_that_gives_ever_more_to_tell_is_told_of_a_few_times(workspace: Path) -> None:
    settings = of(workspace)
    seen: list[Event] = []
    async with Session.open(settings, workspace, listeners=[seen.append]) as session:
        connection = session.servers.connection("stub", settings.mcp.servers["stub"])
        for number in range(9):  # as one that is connected again and again, and says something else each time
            connection._surroundings.notify("warning", f"The MCP server stub: {number} entries left out")
            connection._surroundings.notify("warning", "The MCP server stub: always the same")
        session.report()
    told = notices(seen)
    assert ["left out" in text for text in told] == [True, False, True, True, True, False]
    assert "more to say about the MCP server stub" in told[-1]


async def test_without_a_person_a_server_cannot_ask_and_the_run_goes_on(workspace: Path) -> None:
    async def nobody(question: Question) -> str:
        raise Waiting("nobody")

    server = stub(workspace, "--tools", "ask")
    for ask in (None, nobody):
        agent, _ = await worked(configured(stub=server), [call("mcp_stub_ask"), "done"], ask=ask)
        assert len(observations(agent)) == 1


async def test_what_is_recorded_of_a_server_does_not_depend_on_whether_a_person_was_there(workspace: Path) -> None:
    async def ask(question: Question) -> str:
        raise AssertionError

    await known(workspace, "--more-for-a-person")
    door = Door("deny")
    settings = of(workspace, "--more-for-a-person")
    agent, _ = await worked(settings, [call("mcp_stub_add", a=1, b=2), "done"], door=door, ask=ask)
    assert tools_of(requests(agent)[1]) == ["mcp_stub_add", "mcp_stub_ask", "mcp_stub_echo"]
    assert door.asked == []


async def test_a_servers_question_ends_with_the_run_and_takes_no_later_words_for_its_answer(workspace: Path) -> None:
    agent: Manus

    async def ask(question: Question) -> str:
        if not question.text.startswith("The MCP server"):
            return "skip"  # what came of the call that was interrupted
        agent.cancel()
        await asyncio.Event().wait()
        raise AssertionError

    seen: list[Event] = []
    settings = configured(stub=stub(workspace, "--tools", "ask,echo"))
    agent = Manus(llm=ScriptedModel([call("mcp_stub_ask"), "done"]), settings=settings, ask=ask)
    async with agent:
        result = await agent.run("go", listener=seen.append)
        assert result.status is Status.CANCELLED
        await agent.run("now something else", listener=seen.append)
    told = [event for event in seen if isinstance(event, QuestionAsked | QuestionAnswered)]
    assert [event.type for event in told] == ["question_asked", "question_answered"] * 2
    assert told[0].id == told[1].id
    assert [message.content for message in agent.messages if message.role == "user"] == ["go", "now something else"]
