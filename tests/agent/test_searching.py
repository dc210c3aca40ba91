"""A search of a folder that holds what rules forbid to read: it runs where a sandbox keeps that, and leaves it out."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import PolicySettings, SandboxSettings, Settings
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import JSON
from handwork.tool.bash import Bash
from handwork.tool.search_files import SearchFiles
from handwork.tool.terminate import Terminate


async def _searched(
    settings: Settings,
    space: Path,
    rules: tuple[str, ...],
    *,
    backend: Literal["bwrap", "host"] = "bwrap",
    before: str = "",
    **words: JSON,
) -> str:
    """What the model reads of a search for `needle`, after a command."""
    for name in ("a.txt", "b.key", "secret/c.txt", "src/d.txt"):
        (space / name).parent.mkdir(parents=True, exist_ok=True)
        (space / name).write_text(f"needle in {name}\n")
    asked = {"query": "needle", **words}
    agent = ToolCallAgent(
        settings=settings.model_copy(
            update={"policy": PolicySettings(rules=rules), "sandbox": SandboxSettings(backend=backend)}
        ),
        workspace=space,
        llm=ScriptedModel(
            [*([[call("bash", command=before)]] if before else []), [call("search_files", **asked)], "ok"]
        ),
        available_tools=[Bash, SearchFiles, Terminate],
    )
    await agent.run("go")
    return [message.content or "" for message in agent.messages if message.role == "tool"][-1]


RULES = ("deny read **/*.key", "deny read secret/**")


@pytest.mark.parametrize("words", [{}, {"path": "."}, {"kind": "name", "query": "."}])
async def test_a_folder_with_forbidden_files_is_searched_without_them(
    settings: Settings, tmp_path: Path, words: dict[str, JSON]
) -> None:
    found = await _searched(settings, tmp_path / "space", RULES, **words)
    assert "a.txt" in found
    assert "src/d.txt" in found
    assert "b.key" not in found
    assert "secret/c.txt" not in found


async def test_a_forbidden_file_that_appeared_since_the_sandbox_started_is_left_out_too(
    settings: Settings, tmp_path: Path
) -> None:
    found = await _searched(settings, tmp_path / "space", RULES, before="echo needle now > new.key; mkdir -p x; ls")
    assert "needle in a.txt" in found
    assert "needle now" not in found
    assert "2 matching lines in 2 files" in found
    assert "could not be read" in found


@pytest.mark.parametrize("path", ["b.key", "secret", "secret/c.txt"])
async def test_what_is_forbidden_itself_is_not_searched(settings: Settings, tmp_path: Path, path: str) -> None:
    found = await _searched(settings, tmp_path / "space", RULES, path=path)
    assert "denied by the policy" in found


async def test_what_wants_to_be_asked_about_is_asked_about(settings: Settings, tmp_path: Path) -> None:
    found = await _searched(settings, tmp_path / "space", ("ask read secret/**",))
    assert found.startswith("Not executed")


async def test_where_no_sandbox_keeps_it_the_search_is_asked_about(settings: Settings, tmp_path: Path) -> None:
    found = await _searched(settings, tmp_path / "space", RULES, backend="host")
    assert found.startswith("Not executed")
