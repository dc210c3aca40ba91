"""The model knows when there is no network before it waits for one; its requests begin with the same bytes all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handwork.agent.surroundings import network_words
from handwork.agent.toolcall import ToolCallAgent
from handwork.config import SandboxSettings, Settings
from handwork.llm.scripted import ScriptedModel, call
from handwork.session import Session
from handwork.tool.bash import Bash
from handwork.tool.terminate import Terminate


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "without a network"),
        ({"backend": "bwrap"}, "without a network"),
        ({"backend": "landlock"}, "without a network"),
        ({"backend": "docker"}, "without a network"),
        ({"use_sandbox": True}, "without a network"),
        (
            {"allow_net": ("example.org", "*.example.com:8080")},
            "these hosts only: example.org, *.example.com:8080. Others",
        ),
        ({"allow_net": tuple(f"h{n}.example.com" for n in range(50))}, "h19.example.com, 30 more. Others"),
    ],
)
def test_it_is_said_where_the_sandbox_has_no_network_or_leads_to_some_hosts(given: dict[str, Any], words: str) -> None:
    assert words in network_words(SandboxSettings.model_validate(given))


@pytest.mark.parametrize(
    "given",
    [
        {"network": True},
        {"backend": "host"},
        {"backend": "daytona"},
        {"use_sandbox": True, "network_enabled": True},
        {"backend": "docker", "network": True},
    ],
)
def test_where_there_is_one_nothing_is_said(given: dict[str, Any]) -> None:
    assert network_words(SandboxSettings.model_validate(given)) == ""


async def _systems(settings: Settings, workspace: Path, tools: list[Any]) -> set[str | None]:
    async with Session.open(settings, workspace) as session:
        model = ScriptedModel([call("bash", command="true"), "done", "again"])
        agent = ToolCallAgent(settings=settings, llm=model, available_tools=tools, session=session, system_prompt="Be.")
        await agent.run("go")
        await agent.run("and on")
        return {request.system for request in model.requests}


async def test_it_stands_in_the_system_prompt_for_good_if_a_tool_works_there(
    settings: Settings, tmp_path: Path
) -> None:
    settings = _on(settings, "auto")
    (system,) = await _systems(settings, tmp_path / "a", [Bash(), Terminate()])
    assert str(system).startswith("Be.\n\nPrograms run in a sandbox without a network")
    assert await _systems(settings, tmp_path / "b", [Terminate()]) == {"Be."}
    assert await _systems(_on(settings, "host"), tmp_path / "c", [Terminate()]) == {"Be."}


def _on(settings: Settings, backend: str) -> Settings:
    return settings.model_copy(update={"sandbox": SandboxSettings.model_validate({"backend": backend})})
