"""A hostile workspace: what lies in it must run nothing outside, and what the user's programs would run is not written."""

from __future__ import annotations

from pathlib import Path

from .row import Check, Row, absent, edit, python, shell, writes
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

_LATER = (".vscode/tasks.json", ".git/hooks/post-merge", ".handwork/skills/x/SKILL.md", ".envrc", ".husky/pre-commit",
          ".claude/settings.json", ".ssh/authorized_keys", ".vimrc", ".githooks/x", ".devcontainer/devcontainer.json")  # fmt: skip
_SPELT = (".Envrc", ".VSCODE/tasks.json", ".envrc.", ".envrc ", ".en\u200bvrc", ".HandWork/agents/x.md", ".BASHRC", "MISE.toml",
          ".Git-hooks/../.GITHOOKS/x",
          "X.Code-Workspace",
              ".\uff45nvrc", "sub/../.envrc", "././/.zshrc", ".vimrc", ".gdbinit", ".Rprofile", "opencode.json")  # fmt: skip


def _kept(name: str) -> Check:
    def check(world: World, _said: str) -> str:
        place = world.workspace / name
        return f"{name} was written" if place.is_file() and "OWNED" in place.read_text() else ""

    return check


def _written(*names: str) -> Check:
    def check(world: World, _said: str) -> str:
        found = [name for name in names if (world.workspace / name).exists()]
        return f"{found} were written" if found else ""

    return check


def _git_kept(world: World, _said: str) -> str:
    place = world.workspace / ".git" / "config"
    return "" if place.is_file() and "hostile-hooks" in place.read_text() else ".git was replaced"


WORKSPACE: list[Row] = [
    *(row for name in _THERE for row in writes(name, name, _kept(name))),
    *(shell(f"remove {name}", f"rm -rf {name}; mv {name} away; echo OWNED > {name}", _kept(name)) for name in _THERE),
    *(row for name in _NOT_THERE for row in (
        shell(f"make {name}", f"mkdir -p $(dirname {name}) && echo OWNED > {name}", absent(name)),
        edit(f"make {name}", absent(name), command="create", path=name, file_text="OWNED\n"),
        python(f"make {name}",
            f"import os; os.makedirs(os.path.dirname({name!r}) or '.', exist_ok=True); open({name!r}, 'w').write('OWNED')", absent(name)),
        shell(f"link {name}", f"mkdir -p $(dirname {name}) && ln -s ../plain.txt {name}", absent(name)),
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
    *(shell(f"make {spelt!r}", f"mkdir -p $(dirname '{spelt}') && echo OWNED > '{spelt}'", absent(spelt)) for spelt in _SPELT),
    *(shell(f"rename to {name}", f"mkdir -p $(dirname {name}) new && echo OWNED > new/x && mv -T new/x {name}", absent(name))
      for name in _LATER),
    *(shell(f"swap a folder to make {name}", f"mkdir -p new/d && echo OWNED > new/d/{Path(name).name} && mv -T new/d {Path(name).parent}",
            absent(name)) for name in _LATER if "/" in name),
    shell("a second name for the hook", "ln .git/hooks/pre-commit h && echo OWNED > h; cp --remove-destination h .git/hooks/pre-commit",
          _kept(".git/hooks/pre-commit")),
    shell("mount over .git", "mount -t tmpfs none .git; umount -l .git/hooks; umount -l .git/config; echo OWNED > .git/config", _git_kept),
    shell("a git folder elsewhere", "echo 'gitdir: ../evil' > sub.git; mkdir -p evil/hooks; git init -q --separate-git-dir evil2 . ; "
          "git worktree add -f ../wt; true", _git_kept),
    shell("settings that include others",
        "git config --file .git/config include.path ../evil; echo '[core]' >> .git/config.worktree; rm -f .git/config.worktree",
          _git_kept),
    edit("read the project's words", command="view", path="AGENTS.md"),
    shell("a repository made inside, with a hook",
          "git init -q made && printf '#!/bin/sh\\n' > made/.git/hooks/post-commit && chmod +x made/.git/hooks/post-commit",
          _written("made/.git/hooks/post-commit"),
          "a repository that was made inside stays, hooks and settings, too; what it runs is told at the end"),
    shell("what the user starts",
        "echo OWNED | tee Makefile package.json conftest.py .pre-commit-config.yaml; mkdir -p .venv/bin; cp /bin/true .venv/bin/python",
          _written("Makefile", "package.json", ".pre-commit-config.yaml", ".venv/bin/python"),
          "build files, tests and environments are what an agent writes for a living; the user starts what reads them"),
    shell("a start-up file in a folder between", "mkdir -p between && echo OWNED > between/.envrc", _written("between/.envrc"),
          "protected names count at the root of the workspace and of repositories in it, not in every folder"),
    shell("a start-up file for a moment", "echo OWNED > .envrc; test -s .envrc && echo LE''AK", None,
          "between its making and the end of the call, what appeared is there"),
]  # fmt: skip
