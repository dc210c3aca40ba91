"""Programs beside the sandbox: the user's rights and home, no secrets in their environment, and none is left."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import psutil
import pytest

from handwork.sandbox.beside import Beside

from .test_containment import _missing, readable_python

__all__ = ["readable_python"]

_READS_US = """
import asyncio, os, subprocess, sys
from pathlib import Path
from handwork.sandbox.beside import Beside
from handwork.sandbox.host import HostSandbox

async def main(base):
    reads = ["cat", f"/proc/{os.getpid()}/environ"]
    assert b"sk-secret" in subprocess.run(reads, capture_output=True, env={}).stdout, "nothing to be read before"
    kind = {"beside": Beside, "host": HostSandbox}[sys.argv[2]]
    place = kind(base / "w", base / "a", lambda level, text: None)
    result = await place.exec(reads)
    traced = await place.exec(["cat", f"/proc/{os.getpid()}/maps"])
    again = await place.exec(["sh", "-c", "echo works; cat /proc/self/environ | wc -c"])
    await place.close()
    assert again.output.startswith(b"works"), again
    print(result.exit_code, b"sk-secret" in result.output, result.stderr.decode(), traced.exit_code)
asyncio.run(main(Path(sys.argv[1])))
"""


async def test_a_program_beside_the_sandbox_has_the_users_home_and_nothing_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    environ = {**os.environ, "HOME": str(tmp_path), "LC_ALL": "C", "GITHUB_TOKEN": "x", "USER": "() { evil"}
    place = Beside(tmp_path / "w", tmp_path / "a", lambda level, text: told.append(text), environ=environ)
    try:
        result = await place.exec(["env"], env={"GIVEN": "yes"})
        seen = dict(line.split("=", 1) for line in result.output.decode().splitlines())
        assert (seen["HOME"], seen["LC_ALL"], seen["GIVEN"]) == (str(tmp_path), "C", "yes")
        assert not {"OPENAI_API_KEY", "GITHUB_TOKEN", "USER", "HANDWORK_HOME"} & set(seen)
        assert (await place.exec(["pwd"])).output.decode().strip() == str(tmp_path / "w")
        assert told == []
    finally:
        await place.close()


async def test_nothing_is_left_when_it_closes(tmp_path: Path) -> None:
    place = Beside(tmp_path / "w", tmp_path / "a", lambda level, text: None)
    process = await place.spawn(["bash", "-c", "setsid sleep 1000 & echo $!; sleep 1000"], apart=True)
    child = int(await process.read())
    assert psutil.pid_exists(child)
    await place.close()
    assert not psutil.pid_exists(child)


@pytest.mark.parametrize("kind", ["beside", "host"])
async def test_a_program_of_an_ordinary_user_beside_the_sandbox_cannot_read_our_environment(
    readable_python: tuple[str, Path], kind: str
) -> None:
    python, folder = readable_python
    if os.getuid() == 0 and (reason := _missing(python)):
        pytest.skip(reason)
    uid, work = 61_237, folder / "work"
    work.mkdir()
    start = [sys.executable]
    if os.getuid() == 0:
        os.chown(work, uid, uid)
        start = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", python]
    run = await asyncio.create_subprocess_exec(
        *start, "-c", _READS_US, str(work), kind,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "lib"), "HOME": str(work), "OPENAI_API_KEY": "sk-secret"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=folder,
    )  # fmt: skip
    output, errors = await asyncio.wait_for(run.communicate(), 100)
    assert run.returncode == 0, errors.decode()
    code, seen, *said = output.decode().split()
    assert (code, seen) == ("1", "False")
    assert "Permission denied" in " ".join(said)
    assert said[-1] == "1"
