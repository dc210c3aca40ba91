"""Protected names, and the landlock sandbox, as an ordinary user: the same holds as for root."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from handwork.sandbox.inside import landlock

from .test_containment import _reason_to_skip, readable_python

__all__ = ["readable_python"]

_RUN = """
import asyncio, json, sys
from pathlib import Path
from handwork.sandbox.bwrap import BwrapSandbox
from handwork.sandbox.landlock import LandlockSandbox

async def main(base, kind):
    space = base / "space"
    for folder in (".git/hooks", ".git/objects", ".git/refs"):
        (space / folder).mkdir(parents=True)
    (space / ".git" / "HEAD").write_text("ref: refs/heads/main")
    (space / ".git" / "config").write_text("good")
    (base / "secret").write_text("secret")
    notices = []
    backend = {"bwrap": BwrapSandbox, "landlock": LandlockSandbox}[kind]
    sandbox = backend(space, base / "artifacts", lambda level, text: notices.append(text))
    async def run(command):
        result = await sandbox.exec(["bash", "-c", command])
        return result.exit_code
    found = {
        "read": await run(f"cat {base}/secret"),
        "work": await run("echo x > file; mkdir d; mv file d; cat d/file"),
    }
    await run(f"echo x > {base}/new; echo x >> {base}/secret; truncate -s 0 {base}/secret")
    await run("echo evil >> .git/config; echo evil > .git/hooks/pre-commit; mkdir .vscode; chmod 0 .vscode; echo > .envrc; chmod 500 .")
    found["told"] = len(await sandbox.after_call())
    await sandbox.close()
    found["config"] = (space / ".git" / "config").read_text()
    found["left"] = sorted(path.name for path in space.iterdir())
    found["hooks"] = [path.name for path in (space / ".git" / "hooks").iterdir()]
    found["new"] = (base / "new").exists()
    found["secret"] = (base / "secret").read_text()
    print(json.dumps(found))
asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
async def test_as_an_ordinary_user_the_same_holds(readable_python: tuple[str, Path], kind: str) -> None:
    python, folder = readable_python
    if reason := _reason_to_skip(python):
        pytest.skip(reason)
    if kind == "landlock" and landlock.version() < 3:
        pytest.skip("this kernel has no Landlock, or an older one")
    uid = 61_235
    work = folder / "work"
    work.mkdir()
    os.chown(work, uid, uid)
    run = await asyncio.create_subprocess_exec(
        "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", python, "-c", _RUN, str(work), kind,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "lib"), "HOME": str(work / "home")},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=folder,
    )  # fmt: skip
    output, errors = await asyncio.wait_for(run.communicate(), 100)
    assert run.returncode == 0, errors.decode()
    found = json.loads(output)
    assert found["read"] != 0
    assert not found["new"]
    assert found["work"] == 0
    assert found["told"] >= 2
    assert (found["config"], found["secret"], found["hooks"]) == ("good", "secret", [])
    assert found["left"] == [".git", "d"]
