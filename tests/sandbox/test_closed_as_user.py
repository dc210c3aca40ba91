"""What rules close, as an ordinary user: the same holds as for root, and what that user cannot look at is closed whole."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from .test_containment import _reason_to_skip, readable_python

__all__ = ["readable_python"]

_RUN = """
import asyncio, json, sys
from pathlib import Path
from handwork.config.policy_rules import parse_rule
from handwork.policy.closed import Closed
from handwork.policy.paths import Place
from handwork.sandbox.bwrap import BwrapSandbox
from handwork.sandbox.closed import Rules

async def main(base):
    space = base / "space"
    for folder in ("secrets/deep", "ci", "shut"):
        (space / folder).mkdir(parents=True)
    for name in (".env", "secrets/deep/key", "shut/key"):
        (space / name).write_text("the-secret")
    (space / "ci" / "a").write_text("good")
    (space / "shut").chmod(0)
    texts = ["deny read .env", "deny read secrets/**", "deny read **/key", "deny write ci/**"]
    rules = Rules(texts, Closed([parse_rule(text) for text in texts], Place(str(space), "/")))
    notices = []
    sandbox = BwrapSandbox(space, base / "artifacts", lambda level, text: notices.append(text), rules=rules)
    async def run(command):
        result = await sandbox.exec(["bash", "-c", command])
        return (result.output + result.stderr).decode()
    found = {
        "read": await run("chmod -R 777 . ; cat .env secrets/deep/key shut/key; grep -r the . ; mv secrets s; cat s/deep/key"),
        "listed": await run("ls secrets"),
        "write": await run("echo evil > ci/a; echo evil > ci/b; rm -rf ci; mv ci c; umount ci; echo evil > ci/a"),
        "work": await run("echo x > file; cat file"),
    }
    await sandbox.close()
    (space / "shut").chmod(0o700)
    found["ci"] = sorted(path.name for path in (space / "ci").iterdir())
    found["a"], found["key"] = (space / "ci/a").read_text(), (space / "secrets/deep/key").read_text()
    found["notices"] = notices
    print(json.dumps(found))
asyncio.run(main(Path(sys.argv[1])))
"""


async def test_as_an_ordinary_user_the_same_is_closed(readable_python: tuple[str, Path]) -> None:
    python, folder = readable_python
    if reason := _reason_to_skip(python):
        pytest.skip(reason)
    uid = 61_236
    work = folder / "work"
    work.mkdir()
    os.chown(work, uid, uid)
    run = await asyncio.create_subprocess_exec(
        "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", python, "-c", _RUN, str(work),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "lib"), "HOME": str(work / "home")},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=folder,
    )  # fmt: skip
    output, errors = await asyncio.wait_for(run.communicate(), 100)
    assert run.returncode == 0, errors.decode()
    found = json.loads(output)
    assert "the-secret" not in found["read"]
    assert "denied" in found["listed"]
    assert "Read-only" in found["write"]
    assert (found["work"], found["ci"], found["a"], found["key"]) == ("x\n", ["a"], "good", "the-secret")
    assert found["notices"] == []
