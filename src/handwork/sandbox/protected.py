"""Which names in a workspace programs of the user's act on merely because they lie there, and why: one table, pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

_BY_REASON: Mapping[str, str] = {
    "Handwork reads its own settings, servers and rules there":
        "handwork.toml .handwork mcp.json .mcp.json config/config.toml config/mcp.json",
    "editors run tasks, tools and servers that it names when they open the folder":
        ".vscode .vs .idea .fleet .zed .theia .devcontainer .devcontainer.json .externalToolBuilders",
    "other agents start the servers, hooks and commands that it names":
        ".claude .cursor .codex .gemini .qwen .windsurf .kiro .trae .roo .continue .opencode opencode.json opencode.jsonc "
        ".aider.conf.yml",
    "a shell runs it when it starts, or when it enters the folder":
        ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc "
        ".cshrc .tcshrc .login .logout .inputrc .envrc .direnv .autoenv .autoenv.zsh .rvmrc .mise .mise.toml .mise.local.toml "
        "mise.toml mise.local.toml .xprofile .xinitrc .xsession .xsessionrc .pam_environment",
    "an editor, a debugger or an interpreter runs it when it is started in the folder":
        ".vimrc _vimrc .gvimrc .exrc .nvimrc .nvim.lua .lvimrc .dir-locals.el .dir-locals-2.el .emacs .gdbinit .lldbinit .pdbrc "
        ".Rprofile .irbrc .pryrc .octaverc .pythonrc .pythonrc.py",
    "it decides who may log in, or which programs are run then": ".ssh",
    "git reads it as the settings of a user, which name programs": ".gitconfig",
    "git hooks are kept there": ".husky .githooks",
    "Mercurial and Jujutsu run programs that it names": ".hg/hgrc .hg/hgrc-not-shared .jj/repo/config.toml",
}  # fmt: skip
"""Not here, since the user starts what reads it: build files, package.json, conftest.py, .venv, a hook runner's settings. Nor
AGENTS.md and its like: they are words, which people have agents write."""

_ENDINGS: Mapping[str, str] = {".code-workspace": "editors run tasks that it names when they open it"}

_GIT: Mapping[str, str] = {
    "config": "git runs programs that it names (core.fsmonitor, core.sshCommand, filters …)",
    "config.worktree": "git runs programs that it names (core.fsmonitor, core.sshCommand, filters …)",
    "hooks": "git runs the programs in it",
    "commondir": "it tells git where the settings and hooks lie",
}
"""Within a git folder. Objects, refs, index, logs, info and the rest stay free: commits, branches, stashes and merges write there."""

POINTER = "it tells git where the repository with its settings and hooks lies"
NAMED_BY_GIT = "the settings of the repository have git run or read what lies there"

_UNSEEN = frozenset(
    [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF, *range(0xFE00, 0xFE10), 0xAD]
)


def fold(name: str) -> str:
    """A name as the most lenient file system reads it: without case, unseen characters, dots and blanks at its end."""
    if name.isascii():
        return name.lower().rstrip(" .")
    seen = "".join(letter for letter in name if ord(letter) not in _UNSEEN)
    return unicodedata.normalize("NFKC", seen).casefold().rstrip(" .")


NAMES: Mapping[str, str] = {fold(name): why for why, names in _BY_REASON.items() for name in names.split()}
"""Why each name is protected, by its folded form; some have a folder's name in front."""
GIT: Mapping[str, str] = {fold(name): why for name, why in _GIT.items()}
FOLDERS = frozenset(name.partition("/")[0] for name in NAMES if "/" in name)
"""Folders that are no concern themselves, but hold protected names."""


def reason(parts: Sequence[str]) -> str:
    """Why a path, given by its names below the root of a workspace or repository, is protected or lies below what is; else ''."""
    folded = [fold(part) for part in parts]
    if not folded:
        return ""
    if folded[0] == ".git":
        return git_reason(folded[1:])
    for count in range(1, min(len(folded), 3) + 1):
        if why := NAMES.get("/".join(folded[:count])):
            return why
    return next((why for ending, why in _ENDINGS.items() if folded[0].endswith(ending)), "")


def git_reason(parts: Sequence[str]) -> str:
    """The same within a git folder; those of submodules and of further work trees lie in it."""
    folded = [fold(part) for part in parts]
    if not folded:
        return ""
    if folded[0] not in ("modules", "worktrees"):
        return GIT.get(folded[0], "")
    return next((GIT[part] for part in folded[2:] if part in GIT), "")
