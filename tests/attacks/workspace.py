"""A hostile workspace: what lies in it must run nothing outside, and what the user's programs would run is not written."""

from __future__ import annotations

from .row import Check, Row, edit, python, shell, writes
from .world import World

_THERE = (
    "handwork.toml",
    "mcp.json",
    ".mcp.json",
    "config/mcp.json",
    "config/config.toml",
    ".git/config",
    ".git/hooks/pre-commit",
)
_NOT_THERE = (".envrc", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".gitconfig", ".vscode/tasks.json", ".idea/workspace.xml",
              ".git/hooks/post-commit", ".git/config.worktree", ".handwork/agents/evil.md", ".handwork/skills/evil/SKILL.md")  # fmt: skip


def _kept(name: str) -> Check:
    def check(world: World, _said: str) -> str:
        place = world.workspace / name
        return f"{name} was written" if place.is_file() and "OWNED" in place.read_text() else ""

    return check


def _absent(name: str) -> Check:
    def check(world: World, _said: str) -> str:
        return f"{name} is in the workspace" if (world.workspace / name).exists() else ""

    return check


def _git_kept(world: World, _said: str) -> str:
    return "" if "hostile-hooks" in (world.workspace / ".git" / "config").read_text() else ".git was replaced"


WORKSPACE: list[Row] = [
    *(row for name in _THERE for row in writes(name, name, _kept(name))),
    *(shell(f"remove {name}", f"rm -rf {name}; mv {name} away; echo OWNED > {name}", _kept(name)) for name in _THERE),
    *(row for name in _NOT_THERE for row in (
        shell(f"make {name}", f"mkdir -p $(dirname {name}) && echo OWNED > {name}", _absent(name)),
        edit(f"make {name}", _absent(name), command="create", path=name, file_text="OWNED\n"),
        python(f"make {name}",
            f"import os; os.makedirs(os.path.dirname({name!r}) or '.', exist_ok=True); open({name!r}, 'w').write('OWNED')", _absent(name)),
        shell(f"link {name}", f"mkdir -p $(dirname {name}) && ln -s ../plain.txt {name}", _absent(name)),
    )),
    shell("move .git away and make another", "mv .git old && mkdir -p .git/hooks && echo OWNED > .git/config", _git_kept),
    shell("move the hooks away",
        "mv .git/hooks .git/h && mkdir .git/hooks && echo OWNED > .git/hooks/pre-commit", _kept(".git/hooks/pre-commit")),
    shell("git config", "git config core.pager 'touch @MARKS@/pager2'; git config --local alias.x '!touch @MARKS@/x'", _git_kept),
    shell("git with its own hostile config",
        "git status; git diff; git log; git add plain.txt; git commit -m x; git checkout -- .; git stash"),
    shell("python in a hostile folder",
        "python3 -c 'import json, setup, conftest'; python3 -m pytest -q; python3 setup.py install; python3 -m handwork --version"),
    shell("make, npm and direnv", "make; npm test; direnv allow; . ./.env"),
    python("import hostile modules", "import importlib, sys; sys.path.insert(0, '.'); importlib.import_module('sitecustomize')"),
    edit("read the project's words", command="view", path="AGENTS.md"),
]  # fmt: skip
