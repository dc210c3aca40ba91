"""Rules about paths in a real sandbox: what they close, programs cannot read or write, whatever they call it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handwork.config import SandboxSettings
from handwork.config.policy_rules import parse_rule
from handwork.policy.closed import Closed
from handwork.policy.paths import Place
from handwork.sandbox import ruled
from handwork.sandbox.base import Sandbox
from handwork.sandbox.closed import Rules, find_closed
from handwork.sandbox.guard import Guard
from handwork.sandbox.inside import landlock
from handwork.sandbox.open import open_sandbox
from handwork.sandbox.survey import Bounds

SECRET = "the-secret-words"


def rules_of(workspace: Path, *texts: str) -> Rules:
    return Rules(texts, Closed([parse_rule(text) for text in texts], Place(str(workspace), "/home/nobody")))


class Ground:
    """A workspace with secrets, and a sandbox on it."""

    def __init__(self, base: Path) -> None:
        self.space, self.artifacts = base / "space", base / "artifacts"
        self.aside = self.artifacts / "set-aside"
        self.notices = list[str]()
        self.sandbox: Sandbox | None = None
        self.put(".env", SECRET)
        self.put("secrets/deep/key", SECRET)
        self.put("src/a.py", "code")
        self.put(".github/workflows/ci.yml", "good")

    def put(self, name: str, text: str) -> Path:
        path = self.space / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def open(self, *texts: str, backend: str = "bwrap", writable: tuple[str, ...] = ()) -> Sandbox:
        self.sandbox = open_sandbox(
            SandboxSettings(backend=backend, writable=writable),
            workspace=self.space,
            artifacts=self.artifacts,
            notify=lambda level, text: self.notices.append(text),
            rules=rules_of(self.space, *texts),
        )
        return self.sandbox

    async def run(self, command: str) -> tuple[int, str]:
        assert self.sandbox is not None
        result = await self.sandbox.exec(["bash", "-c", command])
        return result.exit_code, (result.output + result.stderr).decode()

    async def told(self) -> str:
        assert self.sandbox is not None
        return " ".join(await self.sandbox.after_call())

    async def close(self) -> None:
        if self.sandbox is not None:
            await self.sandbox.close()
            self.sandbox = None

    def said(self) -> str:
        return " ".join(self.notices)


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground]:
    ground = Ground(tmp_path)
    yield ground
    await ground.close()


WAYS_TO_READ = {
    "by name": "cat {path}",
    "by a script": "echo 'cat {path}' > s.sh; sh s.sh",
    "by a variable": "p={path}; cat $p",
    "by a glob": "cat {glob}",
    "by a link": "ln -s {path} l; cat l",
    "by a hard link": "ln {path} h && cat h",
    "by a copy": "cp -r {path} c; cat c",
    "by a move": "mv {path} m && cat m",
    "by moving the folder around it": "mv $(dirname {path}) m && cat m/*",
    "by python": "python3 -c 'print(open(\"{path}\").read())'",
    "by its folder's descriptor": "exec 9< . && cat /proc/self/fd/9/{path}",
    "through the root of a process": "cat /proc/self/root$PWD/{path}",
    "after chmod": "chmod 777 {path}; cat {path}",
    "by tar": "tar c . | tar xO",
    "by grep": "grep -r secret .",
    "after unmounting": "umount {path}; umount -l {path}; cat {path}",
    "in a new namespace": "unshare -Urm cat {path}",
}


@pytest.mark.parametrize("way", WAYS_TO_READ)
@pytest.mark.parametrize(("rule", "path", "glob"), [
    ("deny read .env", ".env", ".e*"),
    ("deny read secrets/**", "secrets/deep/key", "secrets/*/*"),
    ("deny read **/key", "secrets/deep/key", "secrets/*/*"),
    ("deny read ./secrets/../secrets/deep", "secrets/deep/key", "secrets/*/*"),
])  # fmt: skip
async def test_what_may_not_be_read_is_read_by_no_program(
    ground: Ground, way: str, rule: str, path: str, glob: str
) -> None:
    (ground.space / ("secrets/deep/key" if path == ".env" else ".env")).write_text("x")
    ground.open(rule)
    _code, output = await ground.run(WAYS_TO_READ[way].format(path=path, glob=glob))
    assert SECRET not in output
    await ground.close()
    assert (ground.space / path).read_text() == SECRET


@pytest.mark.parametrize("way", [way for way in WAYS_TO_READ if way not in ("after unmounting", "in a new namespace")])
async def test_without_the_rule_each_of_these_reads_it(ground: Ground, way: str) -> None:
    (ground.space / ".env").write_text("x")
    ground.open("deny read src/**")
    _code, output = await ground.run(WAYS_TO_READ[way].format(path="secrets/deep/key", glob="secrets/*/*"))
    assert SECRET in output


async def test_programs_are_refused_in_words_and_the_rest_can_be_used(ground: Ground) -> None:
    ground.open("deny read .env", "deny read secrets/**")
    for command in ("cat .env", "ls secrets", "cat secrets/deep/key", "echo x > .env", "echo x > secrets/new"):
        code, output = await ground.run(command)
        assert code != 0, command
        assert "denied" in output or "Read-only" in output, command
    assert await ground.run("echo more >> src/a.py; mkdir d; cat src/a.py") == (0, "codemore\n")
    await ground.close()
    assert {path.name for path in ground.space.iterdir()} == {".env", "secrets", "src", ".github", "d"}
    assert ground.notices == []


async def test_the_file_tools_meet_the_same(ground: Ground) -> None:
    sandbox = ground.open("deny read .env", "deny write src/**")
    with pytest.raises(PermissionError):
        await sandbox.read(".env")
    with pytest.raises(OSError, match=r"the rule “deny write src/\*\*” forbids it"):
        await sandbox.write("src/new/file", b"x")
    with pytest.raises(OSError, match="the rule “deny read .env” closes it"):
        await sandbox.write(".env", b"x")


async def test_further_names_of_what_may_not_be_read_are_closed_too(ground: Ground) -> None:
    os.link(ground.space / ".env", ground.space / "src" / "copy")
    os.link(ground.space / "secrets/deep/key", ground.space / "src" / "other")
    (ground.space / "real.txt").write_text(SECRET)
    (ground.space / "name.key").symlink_to("real.txt")
    ground.open("deny read .env", "deny read secrets", "deny read *.key")
    _code, output = await ground.run("cat src/copy; cat src/other; cat name.key; cat real.txt")
    assert SECRET not in output
    assert output.count("denied") == 4


async def test_a_link_that_leads_out_of_the_workspace_closes_nothing_there(ground: Ground) -> None:
    (ground.space / "a.key").symlink_to("/usr/bin/env")
    (ground.space / "b.key").symlink_to("/usr")
    (ground.space / "c.key").symlink_to(".")
    (ground.space / "d.key").symlink_to("nowhere")
    ground.open("deny read *.key")
    assert await ground.run("/usr/bin/env true; cat src/a.py") == (0, "code")
    assert not (ground.space / "nowhere").exists()


WAYS_TO_WRITE = {
    "by name": "echo evil > .github/workflows/ci.yml",
    "by appending": "echo evil >> .github/workflows/ci.yml",
    "a new file": "echo evil > .github/workflows/new.yml",
    "by a move over it": "echo evil > x; mv x .github/workflows/ci.yml",
    "by removing": "rm -rf .github",
    "by moving it away": "mv .github g && echo evil > g/workflows/ci.yml",
    "by a link": "ln -s .github l; echo evil > l/workflows/ci.yml",
    "by a hard link": "ln .github/workflows/ci.yml h; echo evil > h",
    "after chmod": "chmod -R 777 .github; echo evil > .github/workflows/ci.yml",
    "by truncating": "truncate -s 0 .github/workflows/ci.yml",
}


@pytest.mark.parametrize("way", WAYS_TO_WRITE)
async def test_what_may_not_be_written_is_changed_by_no_program(ground: Ground, way: str) -> None:
    ground.open("deny write .github/**")
    await ground.run(WAYS_TO_WRITE[way])
    code, output = await ground.run("cat .github/workflows/ci.yml")
    assert (code, output) == (0, "good")
    await ground.close()
    assert [str(path.relative_to(ground.space)) for path in (ground.space / ".github").rglob("*")] == [
        ".github/workflows", ".github/workflows/ci.yml",
    ]  # fmt: skip
    assert (ground.space / ".github/workflows/ci.yml").read_text() == "good"


async def test_an_earlier_rule_frees_what_a_later_one_closes(ground: Ground) -> None:
    ground.put("out/old", "old")
    ground.put("notes.txt", "old")
    ground.open("allow write out/**", "allow write notes.txt", "allow write src/b.py", "deny write **")
    for command in ("echo new > out/file", "echo new > notes.txt", "rm out/old", "echo new > src/b.py"):
        assert await ground.run(command) == (0, ""), command
    for command in ("echo evil > src/a.py", "echo evil > .env", "rm -r .github", "mv src s"):
        code, _output = await ground.run(command)
        assert code != 0, command
    await ground.run("echo evil > src/c.py; echo evil > new; mkdir -p n/m")
    assert "“deny write **” forbids it" in await ground.told()
    await ground.close()
    assert {path.name for path in ground.space.iterdir()} == {".env", "secrets", "src", ".github", "out", "notes.txt"}
    assert {path.name for path in (ground.space / "src").iterdir()} == {"a.py", "b.py"}
    assert {path.name for path in ground.aside.iterdir()} == {"src_c.py", "new", "n"}
    assert (ground.space / "src/a.py").read_text() == "code"


async def test_a_workspace_that_may_not_be_written_is_read_only(ground: Ground) -> None:
    (ground.space / "sub/.git/hooks").mkdir(parents=True)
    for name in ("objects", "refs"):
        (ground.space / "sub/.git" / name).mkdir()
    ground.put("sub/.git/HEAD", "ref: refs/heads/main")
    ground.open("deny write **", "deny read sub/.git/objects")
    for place in (".", "src", "sub", "sub/.git", "sub/.git/refs"):
        code, output = await ground.run(f"echo x > {place}/new")
        assert code != 0
        assert "Read-only" in output, place
    assert await ground.run("cat src/a.py; echo x > /tmp/x; cat /tmp/x") == (0, "codex\n")


async def test_what_is_masked_within_a_read_only_folder_opens_no_way_to_write(ground: Ground) -> None:
    ground.open("deny write secrets/**", "deny read secrets/deep/key")
    for place in ("secrets", "secrets/deep"):
        code, output = await ground.run(f"echo x > {place}/new")
        assert code != 0
        assert "Read-only" in output


async def test_an_earlier_rule_frees_reading_too(ground: Ground) -> None:
    ground.put("secrets/public/readme", "hello")
    ground.put("secrets/top", SECRET)
    ground.open("allow read secrets/public/**", "deny read secrets/**")
    assert await ground.run("cat secrets/public/readme") == (0, "hello")
    _code, output = await ground.run("cat secrets/top; cat secrets/deep/key; cat secrets/deep/*")
    assert SECRET not in output


async def test_what_is_to_be_asked_about_is_not_closed(ground: Ground) -> None:
    ground.open("ask read .env", "deny read **/.env")
    assert await ground.run("cat .env") == (0, SECRET)


async def test_what_appears_where_it_may_not_be_written_is_moved_away(ground: Ground) -> None:
    ground.put("x.lock", "old")
    ground.open("deny write **/*.lock", "deny write made/**")
    await ground.run(
        "mkdir -p deep/er made/by; echo 1 > new.lock; echo 2 > deep/er/y.lock; echo 3 > made/by/us; echo > ok"
    )
    told = await ground.told()
    assert told.count("may not appear in this workspace") == 3
    assert "the rule “deny write **/*.lock” forbids it" in told
    assert "can change that rule in [policy], which holds from the next session on" in told
    await ground.run("echo 4 > deep/er/z.lock")
    assert "z.lock" in await ground.told()
    left = {path.name for path in ground.space.rglob("*")}
    assert {"x.lock", "ok", "er"} <= left
    assert not {"new.lock", "y.lock", "z.lock", "made"} & left
    assert (ground.space / "x.lock").read_text() == "old"


async def test_what_appears_and_may_not_be_read_stays_and_the_user_is_told(ground: Ground) -> None:
    ground.open("deny read **/*.pem")
    await ground.run("echo mine > src/new.pem")
    assert await ground.told() == ""
    assert (ground.space / "src/new.pem").exists()
    assert "src/new.pem appeared, and the rule “deny read **/*.pem” binds tools alone" in ground.said()


async def test_a_masked_file_that_the_user_replaces_is_told(ground: Ground) -> None:
    ground.open("deny read .env")
    await ground.run("true")
    ground.put("next", "new").rename(ground.space / ".env")
    await ground.told()
    assert ".env was replaced, and the rule “deny read .env” binds tools alone" in ground.said()


async def test_a_folder_that_nobody_can_look_at_is_closed_whole(ground: Ground) -> None:
    if os.getuid() == 0:
        pytest.skip("root looks at every folder: see the test as an ordinary user")
    (ground.space / "secrets").chmod(0)
    ground.open("deny read **/key")
    code, _output = await ground.run("chmod 700 secrets; cat secrets/deep/key")
    (ground.space / "secrets").chmod(0o700)
    assert code != 0


async def test_more_than_can_be_masked_is_said(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ruled, "_MOST_MASKED", 1)
    ground.put("a.pem", SECRET)
    ground.put("b.pem", SECRET)
    ground.open("deny read *.pem")
    _code, output = await ground.run("cat *.pem")
    assert output.count(SECRET) == 1
    assert "cannot hide more places from programs" in ground.said()


def test_a_search_that_comes_to_its_bounds_says_so_and_touches_nothing_there(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"d{number}").mkdir()
    found = find_closed(tmp_path, rules_of(tmp_path, "deny write **/x"), Bounds(folders=10))
    assert not found.complete
    assert len(found.watched) == 10
    assert len(found.unseen) == 21
    assert find_closed(tmp_path, rules_of(tmp_path, "deny write d3/x"), Bounds(folders=2)).complete


async def test_a_file_in_the_place_of_a_folder_that_was_passed_through_is_moved_too(ground: Ground) -> None:
    (ground.space / "n").mkdir()
    ground.open("allow write n/m/**", "allow write src/**", "deny write **")
    await ground.run("rmdir n; echo evil > n")
    assert "n may not appear" in await ground.told()
    assert not (ground.space / "n").exists()


async def test_what_lies_where_the_search_did_not_come_is_not_taken_for_new(ground: Ground) -> None:
    for number in range(20):
        ground.put(f"d{number}/x.lock", "old")
    guard = Guard(
        ground.space, ground.artifacts, lambda level, text: None,
        rules=rules_of(ground.space, "deny write **/*.lock"), bounds=Bounds(folders=5),
    )  # fmt: skip
    ground.put("new.lock", "new")
    assert len(guard.end()) == 1
    assert not (ground.space / "new.lock").exists()
    assert len(list(ground.space.glob("d*/x.lock"))) == 20


def test_without_rules_nothing_is_searched(tmp_path: Path) -> None:
    assert find_closed(tmp_path / "not there", Rules()) == find_closed(tmp_path, Rules())


async def test_writable_lifts_no_rule(ground: Ground) -> None:
    ground.put(".vscode/tasks.json", "good")
    ground.open("deny write .vscode/**", writable=(".vscode",))
    code, _output = await ground.run("echo evil > .vscode/tasks.json")
    assert code != 0


async def test_the_host_says_that_it_holds_no_rule(ground: Ground) -> None:
    ground.open("deny read .env", backend="host")
    assert "bind the tools that name a path, and no program that is run: deny read .env" in ground.said()


async def test_landlock_puts_back_what_was_written_and_says_what_can_be_read(ground: Ground) -> None:
    if landlock.version() < 3:
        pytest.skip("this kernel has no Landlock, or an older one")
    ground.open("deny read .env", "deny write .github/**", backend="landlock")
    await ground.run("echo evil > .github/workflows/ci.yml; echo evil > .github/new")
    assert "it is again what it was" in await ground.told()
    assert (ground.space / ".github/workflows/ci.yml").read_text() == "good"
    assert not (ground.space / ".github/new").exists()
    assert "Rules forbid reading .env, but bind tools alone there: the landlock sandbox cannot hide" in ground.said()


async def test_landlock_holds_a_workspace_that_may_not_be_written(ground: Ground) -> None:
    if landlock.version() < 3:
        pytest.skip("this kernel has no Landlock, or an older one")
    ground.open("deny write **", backend="landlock")
    for command in ("echo x > new", "echo x > src/a.py", "rm .env", "mkdir d", "mv src s"):
        code, _output = await ground.run(command)
        assert code != 0, command
    assert await ground.run("cat src/a.py") == (0, "code")


async def test_a_start_with_many_closed_places_stays_quick(ground: Ground) -> None:
    for number in range(40):
        ground.put(f"d{number}/x.key", SECRET)
    ground.open("deny read **/*.key")
    async with asyncio.timeout(5):
        _code, output = await ground.run("cat d*/x.key")
    assert SECRET not in output
