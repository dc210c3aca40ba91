"""Git over files that a rule masks: nothing wrong is committed, and the model is told why it fails and what to do."""

from __future__ import annotations

import subprocess
from pathlib import Path

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import PolicySettings, SandboxSettings, Settings
from handwork.llm.scripted import ScriptedModel, call
from handwork.tool.bash import Bash
from handwork.tool.terminate import Terminate

_ME = ("-c", "user.name=Me", "-c", "user.email=me@b.test")
_COMMIT = f"git {' '.join(_ME)} commit"


def _repository(folder: Path) -> None:
    for name in (".env", "code.py", "secret/a.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("old\n")
    for words in (("init", "-q"), ("add", "-A"), (*_ME, "commit", "-qm", "one")):
        subprocess.run(["git", *words], cwd=folder, check=True)


async def _run(settings: Settings, space: Path, *commands: str) -> list[str]:
    agent = ToolCallAgent(
        settings=settings.model_copy(
            update={
                "policy": PolicySettings(rules=("deny read .env", "deny read secret/**")),
                "sandbox": SandboxSettings(backend="bwrap"),
            }
        ),
        workspace=space,
        llm=ScriptedModel([*([call("bash", command=command)] for command in commands), "ok"]),
        available_tools=[Bash, Terminate],
    )
    await agent.run("go")
    return [message.content or "" for message in agent.messages if message.role == "tool"]


async def test_what_git_cannot_take_is_told_with_a_way_that_works(settings: Settings, tmp_path: Path) -> None:
    space = tmp_path / "space"
    _repository(space)
    first, *failed, added, committed, status = await _run(
        settings,
        space,
        "echo new > code.py",
        f"{_COMMIT} -am two",
        "git add -A",
        "git stash",
        "git add -A -- ':!.env'",
        f"{_COMMIT} -m two",
        "git diff --name-status HEAD~1 HEAD",
    )
    assert "Rules of the user deny reading .env, secret:" in first
    assert ["git add -A -- ':!PATH'" in text for text in failed] == [True] * 3
    assert "exit code" not in added + committed
    assert "M\tcode.py" in status
    assert "secret" not in status
    assert ".env" not in status
    assert (space / ".env").read_text() == "old\n"


async def test_where_there_is_no_repository_nothing_is_told_of_git(settings: Settings, tmp_path: Path) -> None:
    space = tmp_path / "space"
    space.mkdir()
    (space / ".env").write_text("x")
    (first,) = await _run(settings, space, "echo hello")
    assert "git" not in first


async def test_what_was_committed_before_is_readable_from_the_history(settings: Settings, tmp_path: Path) -> None:
    """Not promised: the objects of the repository are open. docs/security.md says so."""
    space = tmp_path / "space"
    _repository(space)
    (shown,) = await _run(settings, space, "git show HEAD:.env")
    assert "old" in shown
