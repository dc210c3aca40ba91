"""Rules about paths where the sandbox is elsewhere: a container does not see what they close, a machine never gets it."""

from __future__ import annotations

from pathlib import Path

from ..test_closed import SECRET, rules_of
from .conftest import Opener


def _fill(opener: Opener) -> Path:
    space = opener.base / "place0" / "workspace"
    for name in ("secrets/deep", "src", "fixed"):
        (space / name).mkdir(parents=True)
    for name in (".env", "secrets/deep/key", "fixed/key"):
        (space / name).write_text(SECRET)
    (space / "src/a.py").write_text("code")
    return space


async def test_a_container_sees_nothing_of_what_may_not_be_read_and_changes_nothing_of_what_is_read_only(
    opener: Opener,
) -> None:
    space = _fill(opener)
    rules = rules_of(space, "deny read .env", "deny read secrets/**", "deny read fixed/key", "deny write fixed/**")
    sandbox = opener.docker(rules=rules)
    read = await sandbox.exec(["sh", "-c", "cat .env secrets/deep/key fixed/key; grep -r words ."])
    assert SECRET.encode() not in read.output + read.stderr
    for command in ("echo x > fixed/new", "echo x > secrets/new", "mv fixed other", "rm -r secrets"):
        assert (await sandbox.exec(["sh", "-c", command])).exit_code != 0, command
    assert (await sandbox.exec(["sh", "-c", "echo x > src/b.py && cat src/a.py"])).output == b"code"
    await sandbox.close()
    assert (space / "secrets/deep/key").read_text() == SECRET
    assert sorted(path.name for path in (space / "fixed").iterdir()) == ["key"]


async def test_a_container_changes_nothing_where_nothing_may_be_written(opener: Opener) -> None:
    space = _fill(opener)
    sandbox = opener.docker(rules=rules_of(space, "deny write **", "deny read secrets/deep"))
    for place in (".", "src", "secrets", "fixed"):
        assert (await sandbox.exec(["sh", "-c", f"echo x > {place}/new"])).exit_code != 0, place
    assert (await sandbox.exec(["cat", "src/a.py"])).output == b"code"


async def test_what_may_not_be_read_is_not_sent_and_what_may_not_be_written_does_not_come_back(opener: Opener) -> None:
    space = _fill(opener)
    rules = rules_of(space, "deny read .env", "deny read secrets/**", "deny read **/key", "deny write src/**")
    sandbox = opener.daytona(carry=True, work_dir="/workspace", rules=rules)
    found = await sandbox.exec(
        ["sh", "-c", "cat .env fixed/key; grep -r words . ; echo evil > src/a.py; echo evil > src/b.py"]
    )
    assert SECRET.encode() not in found.output + found.stderr
    told = " ".join(await sandbox.after_call())
    assert "src/a.py stays in the sandbox" in told
    assert "the rule “deny write src/**” forbids it" in told
    await sandbox.close()
    assert (space / "src/a.py").read_text() == "code"
    assert not (space / "src/b.py").exists()
    assert (space / ".env").read_text() == SECRET
