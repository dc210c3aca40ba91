"""Which names are protected, in which spellings, and what git must still be able to write."""

from __future__ import annotations

import pytest

from handwork.sandbox.protected import fold, git_reason, reason


@pytest.mark.parametrize(
    "path",
    [
        "handwork.toml", "mcp.json", ".mcp.json", "config/config.toml", "config/mcp.json", ".handwork", ".handwork/skills/x/SKILL.md",
        ".vscode", ".vscode/tasks.json", ".idea/workspace.xml", "team.code-workspace", ".envrc", ".bashrc", ".zshenv", ".profile",
        ".inputrc", ".gitconfig", ".vimrc", ".exrc", ".nvimrc", ".lvimrc", ".dir-locals.el", ".devcontainer/devcontainer.json",
        ".devcontainer.json", ".direnv", ".claude/settings.json", ".cursor/mcp.json",
        ".ssh/authorized_keys", ".hg/hgrc", ".husky/pre-commit",
        ".git/hooks", ".git/hooks/pre-commit", ".git/config", ".git/config.worktree", ".git/commondir", ".git/modules/a/config",
        ".git/modules/deep/er/hooks/post-checkout", ".git/worktrees/w/config.worktree", ".git/worktrees/w/commondir",
    ],
)  # fmt: skip
def test_what_programs_of_the_user_act_on_is_protected(path: str) -> None:
    assert reason(path.split("/"))


@pytest.mark.parametrize(
    "path",
    [
        "AGENTS.md", "CLAUDE.md", "README.md", "src/handwork.toml", "config", "config/app.toml", "vscode",
        ".env", ".gitignore", ".gitattributes",
        ".gitmodules", ".github/workflows/ci.yml", "package.json", "conftest.py", ".venv/bin/python",
        "profile", ".hg/store", ".jj/repo/store",
        ".git", ".git/HEAD", ".git/index", ".git/refs/heads/main", ".git/objects/ab/cd", ".git/logs/HEAD", ".git/info/exclude",
        ".git/MERGE_MSG", ".git/rebase-merge/done", ".git/modules", ".git/modules/a/HEAD",
        ".git/worktrees/w/HEAD", ".git/refs/heads/config",
        ".git/config.lock", "hooks/pre-commit", "",
    ],
)  # fmt: skip
def test_what_an_agent_writes_in_the_course_of_its_work_is_not(path: str) -> None:
    assert reason(path.split("/") if path else []) == ""


@pytest.mark.parametrize(
    "spelling",
    [
        ".VSCODE", ".VsCode", ".vscode ", ".vscode.", ".vscode. .", ".vs\u200ccode", ".vscode\ufeff", "\u2060.vscode", "．vscode",
        ".ｖscode", ".v\u017fcode",
    ],
)  # fmt: skip
def test_a_name_is_known_in_every_spelling_that_some_file_system_takes_for_it(spelling: str) -> None:
    assert reason([spelling, "tasks.json"])


def test_git_folders_are_known_by_their_spellings_too() -> None:
    assert reason([".GIT", "Hooks", "pre-commit"])
    assert git_reason(["CONFIG"])
    assert fold("Straße") == "strasse"
