"""Rules of [policy] about paths in a run: the sandbox holds what the words of a command do not tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import SandboxSettings, Settings
from handwork.config.settings import PolicySettings
from handwork.events import Event, Notice
from handwork.llm.scripted import ScriptedModel, call
from handwork.session.session import Session
from handwork.tool.bash import Bash
from handwork.tool.python_execute import PythonExecute
from handwork.tool.terminate import Terminate

pytestmark = pytest.mark.usefixtures("home")


def settings_of(rules: tuple[str, ...], backend: str = "bwrap") -> Settings:
    return Settings(sandbox=SandboxSettings(backend=backend), policy=PolicySettings(rules=rules))


def agent_of(workspace: Path, *commands: str, rules: tuple[str, ...], backend: str = "bwrap") -> ToolCallAgent:
    return ToolCallAgent(
        settings=settings_of(rules, backend),
        workspace=workspace,
        llm=ScriptedModel([[call("bash", command=command)] for command in commands] + ["done"]),
        available_tools=[Bash, PythonExecute, Terminate],
    )


def observations(agent: ToolCallAgent) -> list[str]:
    return [message.content or "" for message in agent.messages if message.role == "tool"]


async def test_a_script_that_names_nothing_reads_no_denied_file_and_writes_no_denied_folder(tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    (tmp_path / ".env").write_text("KEY=hidden")
    (tmp_path / "run.py").write_text("n = '.e' + 'nv'\nprint(open(n).read())")
    (tmp_path / "set.py").write_text("n = 'c' + 'i/x'\nopen(n, 'w')")
    agent = agent_of(tmp_path, "python3 run.py", "python3 set.py", rules=("deny read .env", "deny write ci/**"))
    await agent.run("go")
    first, second = observations(agent)
    assert "Permission denied" in first
    assert "hidden" not in first
    assert "Read-only file system" in second
    assert list((tmp_path / "ci").iterdir()) == []


async def test_a_link_in_a_rule_closes_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("hidden")
    (tmp_path / "name").symlink_to("real")
    agent = agent_of(tmp_path, "p=rea; cat ${p}l", rules=("deny read name",))
    await agent.run("go")
    assert "hidden" not in observations(agent)[0]


async def test_what_a_person_allowed_lifts_nothing_that_a_rule_closes(tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    (tmp_path / "set.py").write_text("n = 'c' + 'i/x'\nopen(n, 'w')")
    settings = settings_of(("deny write ci/**",))
    async with Session.open(settings, tmp_path) as session:
        session.grants.allow([f"allow write {tmp_path}/ci/x"], for_good=False)
        result = await session.sandbox.exec(["python3", "set.py"])
    assert b"Read-only file system" in result.stderr


async def test_a_run_on_the_host_says_that_nothing_holds_the_rules(tmp_path: Path) -> None:
    seen: list[Event] = []
    agent = agent_of(tmp_path, "true", rules=("deny read .env",), backend="host")
    await agent.run("go", listener=seen.append)
    assert any("rules about paths bind the tools" in event.text for event in seen if isinstance(event, Notice))
