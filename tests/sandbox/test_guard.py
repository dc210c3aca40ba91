"""Protected names in a real sandbox: held where they are there, moved away where they appear, nothing of ours left behind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handwork.config import SandboxSettings
from handwork.sandbox import guard as guarding
from handwork.sandbox import stamps
from handwork.sandbox.base import Sandbox
from handwork.sandbox.open import open_sandbox

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git on this machine")


class Ground:
    """A workspace with a repository as git would make it, and a sandbox on it."""

    backend = "bwrap"

    def __init__(self, base: Path) -> None:
        self.base = base
        self.space, self.artifacts = base / "space", base / "artifacts"
        self.aside = self.artifacts / "set-aside"
        self.notices = list[str]()
        self.sandbox: Sandbox | None = None
        self.repository("")

    def repository(self, place: str) -> Path:
        folder = self.space / place / ".git"
        for name in ("hooks", "objects", "refs/heads"):
            (folder / name).mkdir(parents=True)
        (folder / "HEAD").write_text("ref: refs/heads/main\n")
        (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
        return folder

    def open(self, *writable: str) -> Sandbox:
        settings = SandboxSettings(backend=self.backend, writable=writable)
        self.sandbox = open_sandbox(
            settings,
            workspace=self.space,
            artifacts=self.artifacts,
            notify=lambda level, text: self.notices.append(text),
        )
        return self.sandbox

    async def run(self, command: str) -> int:
        sandbox = self.sandbox or self.open()
        return (await sandbox.exec(["bash", "-c", command])).exit_code

    async def told(self) -> str:
        assert self.sandbox is not None
        return " ".join(await self.sandbox.after_call())

    async def close(self) -> None:
        if self.sandbox is not None:
            await self.sandbox.close()

    def tree(self) -> set[str]:
        return {str(path.relative_to(self.space)) for path in self.space.rglob("*")}


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground]:
    ground = Ground(tmp_path)
    yield ground
    await ground.close()


HELD = {
    ".git/config": "[core]\n",
    ".git/hooks/pre-commit": "#!/bin/sh\n",
    ".git/modules/a/config": "[core]\n",
    ".git/modules/a/hooks/x": "",
    ".git/worktrees/w/commondir": "../..\n",
    ".vscode/tasks.json": "{}",
    ".envrc": "",
    "handwork.toml": "",
    "config/config.toml": "[sandbox]\n",
    ".VSCode/settings.json": "{}",
    "sub/.git/hooks/x": "",
    "sub/.bashrc": "",
}


async def test_what_is_there_cannot_be_changed_replaced_removed_or_moved(ground: Ground) -> None:
    ground.repository("sub")
    for name, text in HELD.items():
        (ground.space / name).parent.mkdir(parents=True, exist_ok=True)
        (ground.space / name).write_text(text)
    for folder in (".git/modules/a", ".git/worktrees/w"):
        (ground.space / folder / "HEAD").touch()
    for name in HELD:
        for attack in (
            "echo evil >> {0}", "rm -f {0}; test ! -e {0}", "mv {0} x", "touch new; mv -f new {0}", "rm -rf {1}; test ! -e {1}", "mv {1} y",
            "chmod 777 {0}", "ln {0} z", "ln -sf x {0}", "truncate -s 0 {0} && test -s {0}",
        ):  # fmt: skip
            command = attack.format(name, name.rpartition("/")[0] or name)
            assert await ground.run(command) != 0, command
    assert {name: (ground.space / name).read_text() for name in HELD} == HELD
    assert await ground.told() == ""
    assert ground.notices == []


@pytest.mark.parametrize(
    "name",
    [
        "handwork.toml", ".mcp.json", "config/config.toml", ".handwork/skills/x/SKILL.md", ".vscode/tasks.json", ".ENVRC", ".bashrc",
        ".git/commondir", ".git/config.worktree", ".hg/hgrc", "x.code-workspace", "sub/.vscode/x", "sub/.git/hooks/post-checkout",
    ],
)  # fmt: skip
async def test_what_appears_is_moved_to_the_artifacts_and_both_are_told(ground: Ground, name: str) -> None:
    shutil.rmtree(ground.repository("sub") / "hooks")
    before = ground.tree()
    assert await ground.run(f"mkdir -p $(dirname {name}); echo evil > {name}") == 0
    told = await ground.told()
    assert "was moved to" in told
    assert "[sandbox] writable" in told
    (moved,) = ground.aside.iterdir()
    files = [moved] if moved.is_file() else [path for path in moved.rglob("*") if path.is_file()]
    assert [file.read_text() for file in files] == ["evil\n"]
    (notice,) = ground.notices
    assert str(moved) in notice
    assert ground.tree() - before <= {"config", ".hg"}
    assert await ground.told() == ""


@pytest.mark.parametrize(
    "name", ["\u00fc" * 110 + ".code-workspace", "a\n\x1b[31m\u202e.code-workspace", "b'\\udcff'.code-workspace"]
)
async def test_odd_names_are_moved_and_told_in_one_line(ground: Ground, name: str) -> None:
    sandbox = ground.open()
    assert (await sandbox.exec(["touch", name])).exit_code == 0
    assert "may not appear" in await ground.told()
    (notice,) = ground.notices
    assert notice.isprintable()
    assert len(list(ground.aside.iterdir())) == 1
    assert [path.name for path in ground.space.iterdir()] == [".git"]


async def test_where_it_cannot_be_copied_it_gets_a_name_that_nobody_acts_on(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not _is_another_file_system(_MEMORY, ground.base):
        pytest.skip("there is no second file system to write to")
    ground.artifacts = _MEMORY / f"handwork-test-{os.getpid()}-large"
    monkeypatch.setattr(guarding.beneath, "_LARGEST_COPY", 10)
    try:
        await ground.run("mkdir .vscode; echo 0123456789 > .vscode/file")
        await ground.told()
        (notice,) = ground.notices
        (left,) = [path.name for path in ground.space.iterdir() if path.name != ".git"]
        assert left.startswith("set-aside-")
        assert f"it is called {left} there now" in notice
    finally:
        await ground.close()
        shutil.rmtree(ground.artifacts, ignore_errors=True)


async def test_more_files_than_can_be_copied_in_a_moment_get_a_name_that_nobody_acts_on(ground: Ground) -> None:
    if not _is_another_file_system(_MEMORY, ground.base):
        pytest.skip("there is no second file system here")
    with tempfile.TemporaryDirectory(dir=_MEMORY) as other:
        ground.artifacts = Path(other) / "artifacts"
        await ground.run("mkdir .vscode; for each in {1..2500}; do : > .vscode/$each; done")
        await ground.told()
        assert not (ground.space / ".vscode").exists()
        (aside,) = ground.space.glob("set-aside-*")
        assert len(list(aside.iterdir())) == 2500
        assert "too many files" in " ".join(ground.notices)
        await ground.close()


async def test_what_is_made_again_is_moved_again_and_the_user_is_told_once(ground: Ground) -> None:
    for number in range(3):
        assert await ground.run(f"echo {number} > .envrc") == 0
        assert ".envrc may not appear" in await ground.told()
    assert sorted(path.read_text() for path in ground.aside.iterdir()) == ["0\n", "1\n", "2\n"]
    assert len(ground.notices) == 1


async def test_what_a_program_in_the_background_makes_is_found_at_the_end(ground: Ground) -> None:
    sandbox = ground.open()
    program = await sandbox.spawn(
        ["bash", "-c", "while :; do mkdir -p .vscode; echo x > .vscode/y; echo on; done 2> /dev/null"]
    )
    assert await program.read()
    await sandbox.close()
    assert not (ground.space / ".vscode").exists()
    assert ground.aside.is_dir()


async def test_nothing_of_ours_is_left_in_the_folder(ground: Ground) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(ground.space / "agent.sock"))
        before = ground.tree()
        await ground.run("true")
        await ground.close()
        assert ground.tree() == before


@pytest.mark.parametrize(
    "trap",
    [
        "ln -s $OUT .vscode",
        "ln -s $OUT/secret .envrc",
        "mkdir .vscode; ln -s $OUT .vscode/link",
        "mkdir .vscode; chmod 0 .vscode",
        "mkdir -p .vscode/a/b; chmod 0 .vscode/a .vscode",
        "mkfifo .envrc",
        "mkdir .vscode; chmod 0555 .",
        "mkdir .vscode; ln secret .vscode/hard 2> /dev/null || true",
    ],
)
async def test_the_move_follows_no_link_and_needs_no_rights_that_a_program_took_away(ground: Ground, trap: str) -> None:
    outside = ground.base / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    sandbox = ground.open()
    assert (await sandbox.exec(["bash", "-c", trap], env={"OUT": str(outside)})).exit_code == 0
    assert "was moved to" in await ground.told()
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "secret"
    assert not {".vscode", ".envrc"} & {path.name for path in ground.space.iterdir()}


_MEMORY = Path("/dev/shm")


def _is_another_file_system(place: Path, other: Path) -> bool:
    return os.access(place, os.W_OK) and place.stat().st_dev != other.stat().st_dev


async def test_where_the_artifacts_lie_on_another_file_system_it_is_copied(ground: Ground) -> None:
    if not _is_another_file_system(_MEMORY, ground.base):
        pytest.skip("there is no second file system to write to")
    ground.artifacts = _MEMORY / f"handwork-test-{os.getpid()}"
    try:
        await ground.run(
            "mkdir -p .vscode/deep; echo x > .vscode/deep/file; ln -s /etc/passwd .vscode/link; chmod 0 .vscode/deep"
        )
        assert "was moved to" in await ground.told()
        moved = ground.artifacts / "set-aside" / "vscode"
        assert (moved / "deep" / "file").read_text() == "x\n"
        assert (moved / "link").is_symlink()
        assert [path.name for path in ground.space.iterdir()] == [".git"]
    finally:
        await ground.close()
        shutil.rmtree(ground.artifacts, ignore_errors=True)


async def test_the_file_tools_say_why(ground: Ground) -> None:
    sandbox = ground.open()
    (ground.space / "link").symlink_to(".vscode")
    (ground.space / ".envrc").touch()
    for name in (
        ".vscode/tasks.json",
        ".git/config",
        ".git/hooks/new",
        "link/tasks.json",
        "handwork.toml",
        "./x/../.envrc",
    ):
        with pytest.raises(OSError, match=r"protected: .*\[sandbox\] writable"):
            await sandbox.write(name, b"evil")
    with pytest.raises(OSError, match="a shell runs it"):
        await sandbox.remove(".envrc")
    for name in ("AGENTS.md", ".git/info/exclude", "sub/.vscode.md"):
        await sandbox.write(name, b"fine")
    assert await ground.told() == ""


async def test_what_the_user_frees_can_be_written(ground: Ground) -> None:
    ground.repository("sub")
    (ground.space / ".vscode").mkdir()
    sandbox = ground.open(".vscode", ".git/hooks", "sub/.git/config")
    for command in ("echo x > .vscode/y", "echo x > .git/hooks/y", "echo x >> sub/.git/config", "mkdir -p sub/.vscode"):
        assert await ground.run(command) == 0, command
    await sandbox.write(".vscode/z", b"")
    assert await ground.told() == ""
    for command in ("echo x >> .git/config", "echo x > sub/.git/hooks/y"):
        assert await ground.run(command) != 0, command
    assert ground.notices == []


async def test_a_link_in_a_protected_place_is_put_back_and_its_target_is_held(ground: Ground) -> None:
    (ground.space / "shared").mkdir()
    (ground.space / ".vscode").symlink_to("shared")
    assert await ground.run("echo evil > .vscode/tasks.json") != 0
    assert await ground.run("rm .vscode; mkdir .vscode; echo evil > .vscode/tasks.json") == 0
    assert "it is again what it was" in await ground.told()
    assert (ground.space / ".vscode").readlink() == Path("shared")
    assert (ground.aside / "vscode" / "tasks.json").exists()


async def test_a_protected_file_with_a_second_name_is_put_back(ground: Ground) -> None:
    (ground.space / ".envrc").write_text("good")
    os.link(ground.space / ".envrc", ground.space / "other")
    assert await ground.run("echo evil > other") == 0
    assert "it is again what it was" in await ground.told()
    assert (ground.space / ".envrc").read_text() == "good"


async def test_a_file_of_another_program_that_is_called_like_ours_stays_its_own(ground: Ground) -> None:
    (ground.space / "config").mkdir()
    (ground.space / "config" / "config.toml").write_text('baseURL = "https://example.com"\n')
    sandbox = ground.open()
    assert await ground.run("echo 'title = 1' >> config/config.toml") == 0
    await sandbox.write("config/config.toml", b"[params]\nx = 1\n")
    assert await ground.told() == ""
    assert await ground.run("echo '[policy]' >> config/config.toml") == 0
    assert "config/config.toml may not appear" in await ground.told()


async def test_what_a_hook_is_a_link_to_is_held_like_the_hook(ground: Ground) -> None:
    (ground.space / "scripts").mkdir()
    (ground.space / "scripts" / "check.sh").write_text("good")
    (ground.space / ".git" / "hooks" / "pre-commit").symlink_to("../../scripts/check.sh")
    (ground.space / ".vscode").mkdir()
    (ground.space / ".vscode" / "all").symlink_to("..")
    for command in (
        "echo evil > scripts/check.sh",
        "rm scripts/check.sh",
        "mv scripts x; test -e scripts/check.sh && false",
    ):
        assert await ground.run(command) != 0, command
    assert (ground.space / "scripts" / "check.sh").read_text() == "good"
    assert await ground.run("echo x > scripts/other.sh; echo x > other") == 0
    sandbox = ground.sandbox
    assert sandbox is not None
    with pytest.raises(OSError, match="git runs the programs in it"):
        await sandbox.write("scripts/check.sh", b"evil")


async def test_a_protected_file_in_a_folder_with_a_second_name_is_put_back(ground: Ground) -> None:
    hook = ground.space / ".git" / "hooks" / "pre-commit"
    hook.write_text("good")
    os.link(hook, ground.space / "other")
    assert await ground.run("echo evil > other") == 0
    assert "it is again what it was" in await ground.told()
    assert hook.read_text() == "good"


async def test_many_repositories_do_not_keep_a_sandbox_from_starting(ground: Ground) -> None:
    for number in range(150):
        ground.repository(f"many/{number}")
    assert await ground.run("echo evil >> .git/config") != 0
    assert await ground.run("for n in $(seq 0 149); do echo evil >> many/$n/.git/config; done 2> /dev/null; true") == 0
    await ground.told()
    await ground.close()
    assert {(ground.space / f"many/{number}/.git/config").read_text().count("evil") for number in range(150)} == {0}


async def test_hooks_and_settings_in_places_that_the_repository_names_are_protected(ground: Ground) -> None:
    config = ground.space / ".git" / "config"
    config.write_text("[core]\n\thooksPath = .hooks\n[include]\n\tpath = ../more.config\n")
    (ground.space / ".hooks").mkdir()
    assert await ground.run("echo evil > .hooks/pre-commit") != 0
    assert await ground.run("echo evil > more.config") == 0
    assert "more.config may not appear" in await ground.told()


async def test_a_git_folder_elsewhere_in_the_workspace_is_known_by_its_pointer(ground: Ground) -> None:
    (ground.space / ".git").rename(ground.space / ".bare")
    (ground.space / ".git").write_text("gitdir: ./.bare\n")
    for command in (
        "echo 'gitdir: evil' > .git",
        "rm .git",
        "echo evil >> .bare/config",
        "mv .bare x",
        "echo > .bare/hooks/x",
    ):
        assert await ground.run(command) != 0, command


async def test_sockets_that_are_there_cannot_be_reached(ground: Ground) -> None:
    (ground.space / "deep" / "er").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        # By a name from within: the path of a test's folder can be too long for an address.
        place = os.open(ground.space / "deep" / "er", os.O_PATH)
        listener.bind(f"/proc/self/fd/{place}/s")
        os.close(place)
        listener.listen()
        for path in ("deep/er/s", f"{ground.space}/deep/er/s"):
            connect = f"import os, socket; os.chdir('deep/er'); socket.socket(socket.AF_UNIX).connect('{path.split('/')[-1]}')"
            assert await ground.run(f'python3 -c "{connect}"') != 0
        for attack in ("mv deep x", "mv deep/er x", "rm deep/er/s", "rm -rf deep"):
            await ground.run(attack)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def _repository_of_the_user(space: Path) -> None:
    for command in (
        "init -q -b main",
        "config user.name a",
        "config user.email a@b",
        "commit -q --allow-empty -m first",
    ):
        subprocess.run(["git", "-C", str(space), *command.split()], check=True, capture_output=True)


@needs_git
async def test_an_agent_can_still_work_with_git(ground: Ground) -> None:
    shutil.rmtree(ground.space / ".git")
    _repository_of_the_user(ground.space)
    for command in (
        "echo 1 > f; git add f; git commit -qm second", "git checkout -q -b work; echo 2 >> f; git commit -qam third",
        "echo 3 >> f; git stash -q; git stash pop -q; git commit -qam fourth", "git checkout -q main; git merge -q work",
        "git branch -d work", "git tag t; git log | grep -q fourth", "git worktree add -q w; cd w; git commit -q --allow-empty -m w",
        "git checkout -q -b rebased HEAD~1; git rebase -q main", "git gc -q; git fsck", "git clone -q . copy; cd copy; git config a.b c",
        "git init -q new; cd new; touch .git/hooks/pre-commit; git config a.b c", "test -z \"$(git status -s f)\"",
    ):  # fmt: skip
        result = await (ground.sandbox or ground.open()).exec(["bash", "-ec", command])
        assert result.exit_code == 0, (command, result)
        assert await ground.told() == ""
    assert await ground.run("git config core.fsmonitor evil") != 0


@needs_git
async def test_a_repository_that_was_made_inside_stays_and_what_it_runs_is_told_at_the_end(ground: Ground) -> None:
    shutil.rmtree(ground.space / ".git")
    assert await ground.run("git init -q . && git config core.fsmonitor evil && touch .git/hooks/pre-commit") == 0
    assert await ground.run("git init -q a/plain && git init -q b && cd b && git config core.hooksPath x") == 0
    assert await ground.run("git init -q --bare c && git -C c config core.sshCommand evil") == 0
    assert await ground.told() == ""
    assert ground.notices == []
    await ground.close()
    said = " ".join(sorted(ground.notices))
    assert len(ground.notices) == 3
    for part in ("core.fsmonitor = evil; the hook pre-commit", "core.hookspath = x", "core.sshcommand = evil"):
        assert part in said
    assert "plain" not in said
    assert (ground.space / ".git" / "hooks" / "pre-commit").exists()


@pytest.mark.parametrize(
    ("trick", "told"),
    [
        ("mv .git/hooks h; ln -s ../h .git/hooks", "hooks, which is a link"),
        ("mv .git/config c; ln -s ../c .git/config", "config, which is a link"),
        (
            "head -c 2000000 /dev/zero | tr '\\0' '#' > c; cat .git/config >> c; mv c .git/config",
            "too large to be read",
        ),
        ("echo ../evil > .git/commondir", "settings and hooks in evil"),
        ("mv .git e; echo 'gitdir: e' > .git; echo '[core] pager = evil' >> e/config", "core.pager = evil"),
        ("mv .git e; ln -s e .git; echo '[core] pager = evil' >> e/config", "core.pager = evil"),
        ("mkdir -p node; mv .git node/.git; echo '[core] pager = evil' >> node/.git/config", "core.pager = evil"),
        (
            "mkdir -p .git/modules/x; echo '[core] pager = evil' > .git/modules/x/config; touch .git/modules/x/HEAD",
            "core.pager = evil",
        ),
    ],
)
async def test_no_trick_hides_what_a_repository_made_inside_runs(ground: Ground, trick: str, told: str) -> None:
    shutil.rmtree(ground.space / ".git")
    make = "mkdir -p .git/hooks .git/objects .git/refs; touch .git/HEAD .git/config; "
    assert await ground.run(make + trick) == 0
    await ground.told()
    await ground.close()
    assert told in " ".join(ground.notices)


async def test_a_held_file_that_the_user_replaces_outside_is_compared_from_then_on(ground: Ground) -> None:
    await ground.run("true")
    config = ground.space / ".git" / "config"
    (ground.space / "new").write_text("[user]\nname = me\n")
    (ground.space / "new").rename(config)
    assert await ground.told() == ""
    await ground.run("echo evil >> .git/config")
    await ground.told()
    assert config.read_text() == "[user]\nname = me\n"


async def test_a_call_costs_next_to_nothing_where_nothing_appeared(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(300):
        (ground.space / f"file{number}").touch()
    await ground.run("true")
    monkeypatch.setattr(stamps, "_SETTLED", -1.0)
    await ground.told()
    read = list[str]()
    names = guarding.beneath.names
    monkeypatch.setattr(guarding.beneath, "names", lambda root, path: read.append(path) or names(root, path))
    await ground.told()
    assert read == []


async def test_thousands_of_them_are_moved_and_told_in_a_few_sentences(ground: Ground) -> None:
    await ground.run("for each in {1..2000}; do : > $each.code-workspace; done")
    assert ground.sandbox is not None
    told = await ground.sandbox.after_call()
    assert len(told) < 30
    assert "1980 more" in told[-1]
    assert len(ground.notices) < 30
    assert not list(ground.space.glob("*.code-workspace"))
    assert len(list(ground.aside.iterdir())) == 2000


@pytest.mark.parametrize(
    "pointer", ["a\0b", "a" * 5000, "a/" * 5000, "..", ""], ids=["NUL", "long", "deep", "up", "none"]
)
async def test_no_pointer_keeps_a_sandbox_from_starting(ground: Ground, pointer: str) -> None:
    shutil.rmtree(ground.space / ".git")
    (ground.space / ".git").write_text(f"gitdir: {pointer}\n")
    settings = ground.repository("below") / "config"
    settings.write_text(f'[core]\n\thooksPath = "{pointer}"\n[include]\n\tpath = "{pointer}"\n')
    assert await ground.run("true") == 0
    assert await ground.told() == ""


# ---- many at once, and a git folder that is no repository


async def test_many_that_appear_at_once_are_told_to_the_user_in_one_list(ground: Ground) -> None:
    names = [".bashrc", ".envrc", ".mcp.json", ".vscode", "mcp.json"]
    await ground.run("mkdir .vscode; touch .bashrc .envrc .mcp.json mcp.json")
    assert (await ground.told()).count("may not appear in this workspace") == 5
    (notice,) = ground.notices
    head, *rows = notice.splitlines()
    assert head.endswith(f"moved to {ground.aside}:")
    assert [row.split()[0] for row in rows] == names
    assert "  .mcp.json → mcp.json (" in notice
    assert "  mcp.json → mcp.json-2 (" in notice


@pytest.mark.parametrize("name", ["hooks/post-commit", "config", "commondir"])
async def test_a_git_folder_that_is_no_repository_is_not_made_to_lie_in_wait(ground: Ground, name: str) -> None:
    shutil.rmtree(ground.space / ".git")
    await ground.run("mkdir -p .git/info")
    assert await ground.told() == ""
    await ground.run(f"mkdir -p .git/hooks; echo evil > .git/{name}; chmod +x .git/{name}")
    assert f".git/{name.partition('/')[0]} may not appear" in await ground.told()
    assert not (ground.space / ".git" / name).exists()
    assert ground.sandbox is not None
    with pytest.raises(OSError, match="protected"):
        await ground.sandbox.write(f".git/{name}", b"evil")


async def test_a_deeper_git_folder_that_is_no_repository_is_emptied_at_the_end(ground: Ground) -> None:
    await ground.run("mkdir -p a/b/.git/hooks; echo evil > a/b/.git/hooks/post-commit; : > a/b/.git/HEAD")
    await ground.close()
    assert not (ground.space / "a/b/.git/hooks").exists()
    assert "a/b/.git/hooks was moved to" in ground.notices[-1]


@needs_git
async def test_a_repository_made_inside_keeps_its_hooks_and_they_are_told(ground: Ground) -> None:
    shutil.rmtree(ground.space / ".git")
    await ground.run("git init -q . && echo true > .git/hooks/pre-commit")
    assert await ground.told() == ""
    await ground.close()
    assert (ground.space / ".git/hooks/pre-commit").exists()
    assert "the hook pre-commit" in ground.notices[-1]
