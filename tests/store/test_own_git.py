"""Our own git starts none of the programs that a hostile repository, or the user's environment, names."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from handwork.errors import GitFailed
from handwork.store.own_git import OwnGit

PROGRAMS = """
[core]
    repositoryformatversion = 0
    fsmonitor = {run} fsmonitor
    hooksPath = {hooks}
    pager = {run} pager
    editor = {run} editor
    sshCommand = {run} ssh
    askPass = {run} askpass
    gitProxy = {run} proxy
    alternateRefsCommand = {run} alternates
    attributesFile = {attributes}
    worktree = {elsewhere}
[diff]
    external = {run} external
[diff "evil"]
    textconv = {run} textconv
    command = {run} command
[filter "evil"]
    clean = {run} clean
    smudge = {run} smudge
    process = {run} process
    required = true
[merge "evil"]
    driver = {run} merge
[interactive]
    diffFilter = {run} interactive
[gpg]
    program = {run} gpg
[commit]
    gpgSign = true
[credential]
    helper = !{run} credential
[alias]
    add = !{run} alias
    status = !{run} alias
[sequence]
    editor = {run} sequence
[uploadpack]
    packObjectsHook = {run} pack
[remote "origin"]
    url = ext::{run} ext
    fetch = +refs/heads/*:refs/remotes/origin/*
    uploadpack = {run} uploadpack
    promisor = true
[extensions]
    partialClone = origin
[submodule "sub"]
    url = ext::{run} submodule
    update = !{run} update
    active = true
[gc]
    auto = 1
[trace2]
    eventTarget = {elsewhere}/trace
[include]
    path = {included}
"""
HOOKS = [
    "pre-commit",
    "post-commit",
    "post-checkout",
    "post-index-change",
    "pre-auto-gc",
    "reference-transaction",
    "post-rewrite",
    "fsmonitor-watchman",
    "prepare-commit-msg",
    "commit-msg",
    "applypatch-msg",
    "pre-applypatch",
    "post-merge",
    "sendemail-validate",
    "p4-changelist",
]


class Hostile:
    """A workspace full of traps; each leaves its name in `marks`."""

    def __init__(self, base: Path) -> None:
        self.marks, self.files = base / "marks", base / "files"
        self.trap = base / "trap"
        for folder in (self.marks, self.files, base / "elsewhere"):
            folder.mkdir()
        self._script(self.trap, "$1")
        self._config = PROGRAMS.format(
            run=self.trap,
            hooks=base / "hooks",
            attributes=base / "attributes",
            elsewhere=base / "elsewhere",
            included=base / "included",
        )
        (base / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
        (base / "included").write_text(f"[core]\n fsmonitor = {self.trap} included\n")
        self._hooks(base / "hooks")
        self._repository(self.files, ".git")
        for inner in ("sub", "deep/er"):
            (self.files / inner).mkdir(parents=True)
            self._repository(self.files / inner, ".git")
        self._repository(self.files / "vendor", "bare.git")
        (self.files / ".gitattributes").write_text("* filter=evil diff=evil merge=evil ident text eol=crlf\n")
        (self.files / ".gitmodules").write_text(
            f'[submodule "sub"]\n path = sub\n url = ext::{self.trap} x\n update = !{self.trap} y\n'
        )
        (self.files / "a.txt").write_bytes(b"one $Id$\r\ntwo\n")
        self._script(self.files / "git", "git-in-the-files")
        self._script(self.files / "false", "false-in-the-files")

    def _script(self, path: Path, name: str) -> None:
        path.write_text(f'#!/bin/sh\ntouch "{self.marks}/{name}"\ncat\n')
        path.chmod(0o755)

    def _hooks(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for hook in HOOKS:
            self._script(folder / hook, f"hook-{hook}")

    def _repository(self, folder: Path, name: str) -> None:
        repository = folder / name
        (folder / "inside").parent.mkdir(parents=True, exist_ok=True)
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.marks.parent), "GIT_CONFIG_NOSYSTEM": "1"}
        bare = ["--bare", str(repository)] if name != ".git" else [str(folder)]
        subprocess.run(["git", "init", "-q", *bare], check=True, env=environ, capture_output=True)
        if name == ".git":
            (folder / "inside").write_text("x\n")
            identity = ("-c", "user.name=x", "-c", "user.email=x@x")
            for step in (["add", "inside"], [*identity, "commit", "-qm", "x"]):
                subprocess.run(
                    ["git", "-C", str(folder), *identity, *step], check=True, env=environ, capture_output=True
                )
        self._hooks(repository / "hooks")
        with (repository / "config").open("a") as config:
            config.write(self._config)
        if name == ".git":
            (folder / "inside").write_text("changed\n")

    @property
    def sprung(self) -> list[str]:
        return sorted(path.name for path in self.marks.iterdir())


@pytest.fixture
def hostile(tmp_path: Path) -> Hostile:
    return Hostile(tmp_path)


@pytest.fixture
def hostile_environment(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user's environment and home may hold as well."""
    home = hostile.marks.parent / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(hostile._config)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f".:{hostile.files}::{os.environ['PATH']}")
    for name in (
        "GIT_EXTERNAL_DIFF",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_PAGER",
        "GIT_EDITOR",
        "GIT_ASKPASS",
        "GIT_PROXY_COMMAND",
    ):
        monkeypatch.setenv(name, f"{hostile.trap} {name}")
    monkeypatch.setenv("GIT_DIR", str(hostile.files / ".git"))
    monkeypatch.setenv("GIT_EXEC_PATH", str(hostile.files))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(hostile.files / ".git"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"{hostile.trap} variable")


def test_the_traps_are_real(hostile: Hostile) -> None:
    """Git as anybody calls it springs them."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(hostile.marks.parent)}
    for command in (("status",), ("diff",), ("add", "-A"), ("log", "-p", "--ext-diff")):
        subprocess.run(
            ["git", "-C", str(hostile.files / "sub"), "--work-tree=.", *command],
            env=environ,
            capture_output=True,
            timeout=30,
        )
    assert {"fsmonitor", "hook-post-index-change"} & set(hostile.sprung)
    assert len(hostile.sprung) >= 2, hostile.sprung


@pytest.mark.usefixtures("hostile_environment")
@pytest.mark.parametrize("refused", [True, False], ids=["a .gitmodules that git refuses", "one that it takes"])
async def test_no_program_of_a_hostile_repository_is_started(hostile: Hostile, tmp_path: Path, refused: bool) -> None:
    if not refused:
        modules = hostile.files / ".gitmodules"
        modules.write_text(modules.read_text().partition("update")[0])
    git = OwnGit(tmp_path / "ours", hostile.files)
    await git.begin()
    for _ in range(2):
        await git.run("add", "--all")
        tree = (await git.run("write-tree")).decode().strip()
        commit = (await git.run("commit-tree", tree, "-m", "x")).decode().strip()
        await git.run("update-ref", "refs/heads/main", commit)
        (hostile.files / "a.txt").write_bytes(b"changed $Id$\r\n")
        (hostile.files / "sub" / "inside").write_text("changed again\n")
        for command in (
            ("status", "--porcelain=v2", "--ignored"),
            ("diff-files", "-p"),
            ("diff-index", "-p", commit),
            ("diff-tree", "-p", "--root", commit),
            ("log", "-p", "--show-signature", commit),
            ("ls-files", "--others", "--stage"),
            ("cat-file", "-p", f"{commit}:a.txt"),
            ("update-index", "--refresh", "-q", "--really-refresh"),
            ("rev-list", "--all", "--objects"),
            ("gc", "--prune=now", "--quiet"),
        ):
            may_fail = refused or command[0] == "update-index"  # which says by it that files differ
            with suppress(GitFailed) if may_fail else nullcontext():
                await git.run(*command)
        await git.run("read-tree", commit)
        await git.run("checkout-index", "--all", "--force")
    assert hostile.sprung == []


async def test_files_are_taken_and_given_back_byte_for_byte(hostile: Hostile, tmp_path: Path) -> None:
    git = OwnGit(tmp_path / "ours", hostile.files)
    await git.begin()
    before = (hostile.files / "a.txt").read_bytes()
    await git.run("add", "a.txt")
    (hostile.files / "a.txt").unlink()
    await git.run("checkout-index", "--all", "--force")
    assert (hostile.files / "a.txt").read_bytes() == before


@pytest.mark.parametrize(
    "break_it",
    [
        lambda git: OwnGit(git.files / ".git", git.files),
        lambda git: OwnGit(git.files / "sub" / "ours", git.files),
        lambda git: OwnGit(git.files, git.files),
        lambda git: git.argv("fetch", "origin"),
        lambda git: git.argv("-c", "core.fsmonitor=x", "status"),
        lambda git: git.argv("submodule", "update"),
        lambda git: git.argv("difftool"),
        lambda git: git.argv("config", "alias.x", "!x"),
    ],
)
def test_what_could_start_a_program_is_refused(tmp_path: Path, break_it: Callable[[OwnGit], object]) -> None:
    files = tmp_path / "files"
    files.mkdir()
    with pytest.raises(GitFailed):
        break_it(OwnGit(tmp_path / "ours", files))


def test_git_is_given_nothing_of_the_users_environment_but_its_path(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    environ = {
        "PATH": f".:{files}/bin:/usr/bin:",
        "OPENAI_API_KEY": "sk-1234567890",
        "GIT_DIR": "/x",
        "SSH_AUTH_SOCK": "/s",
    }
    given = OwnGit(tmp_path / "ours", files).environment(environ)
    assert given["PATH"] == "/usr/bin"
    assert not {"OPENAI_API_KEY", "GIT_DIR", "SSH_AUTH_SOCK"} & given.keys()
