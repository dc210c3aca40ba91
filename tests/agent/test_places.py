"""What the sandbox does to a call reaches the model and the user; a weaker sandbox is never used for what was not approved for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import Settings
from handwork.events import Notice, ToolCallFinished
from handwork.llm.scripted import ScriptedModel, call
from handwork.sandbox.auto import ENOUGH
from handwork.sandbox.inside import landlock
from handwork.session import Session
from handwork.tool.bash import Bash
from handwork.tool.editor import StrReplaceEditor
from handwork.tool.terminate import Terminate
from tests.agent.conftest import Seen


async def _run(settings: Settings, workspace: Path, seen: Seen, *script: Any) -> list[str]:
    """What the model saw of each call."""
    async with Session.open(settings, workspace, listeners=[seen]) as session:
        tools = [Bash(), StrReplaceEditor(), Terminate()]
        agent = ToolCallAgent(
            settings=settings, llm=ScriptedModel([*script, "done"]), available_tools=tools, session=session
        )
        await agent.run("go")
        return [message.content or "" for message in agent.messages if message.role == "tool"]


def _notices(seen: Seen) -> str:
    return " | ".join(event.text for event in seen if isinstance(event, Notice))


async def test_what_appeared_in_a_protected_place_is_told_to_the_model_and_the_user(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    space = tmp_path / "space"
    (seen_by_model,) = await _run(
        settings, space, seen, call("bash", command="mkdir .vscode; echo evil > .vscode/tasks.json; echo made")
    )
    assert "made" in seen_by_model
    assert ".vscode may not appear in this workspace" in seen_by_model
    assert ".vscode was moved to" in _notices(seen)
    assert list(space.iterdir()) == []
    (moved,) = settings.home.artifacts.glob("*/set-aside/vscode/tasks.json")
    assert moved.read_text() == "evil\n"


async def test_the_editor_says_why_a_protected_file_is_not_written(
    settings: Settings, tmp_path: Path, seen: Seen
) -> None:
    space = tmp_path / "space"
    space.mkdir()
    path = str(space / "handwork.toml")
    (text,) = await _run(settings, space, seen, call("str_replace_editor", command="create", path=path, file_text="x"))
    assert "protected" in text
    assert "[sandbox] writable" in text
    assert list(space.iterdir()) == []


@pytest.mark.skipif(landlock.version() < ENOUGH, reason="this kernel has no Landlock, or an older one")
async def test_headless_nothing_runs_in_a_sandbox_that_turns_out_to_be_the_weaker_one_and_that_is_told_first(
    settings: Settings, tmp_path: Path, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    space = tmp_path / "space"
    (refused,) = await _run(settings, space, seen, call("bash", command="touch marker"))
    assert refused.startswith("Not executed: no sandbox confines this fully")
    assert list(space.iterdir()) == []
    told = [event for event in seen if isinstance(event, ToolCallFinished) or "WEAKER SANDBOX" in str(event)]
    assert isinstance(told[0], Notice)
