"""Trouble that people have with their machine: each is two lines, what happened and what to do, with the right exit code."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests.cli.command import COMMAND, Ended, handwork
from tests.support.strict_server import StrictServer

from handwork.store.sqlite import Store

Damage = Callable[[Path], None]


def _newer(home: Path) -> None:
    Store.open(home / "store.db").close()
    with sqlite3.connect(home / "store.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def _others(home: Path) -> None:
    with sqlite3.connect(home / "store.db") as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()


def _broken(home: Path) -> None:
    (home / "store.db").write_bytes(os.urandom(20_000))


def _folder(home: Path) -> None:
    (home / "store.db").mkdir()


def _nothing(_home: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("damage", "environ", "what", "do"),
    [
        (_newer, {}, "has version 99", "update Handwork"),
        (_others, {}, "another program's SQLite file", "another path"),
        (_broken, {}, "is damaged", "from a backup"),
        (_folder, {}, "unable to open", "HANDWORK_HOME"),
        (_nothing, {"HANDWORK_HOME": "/proc/handwork"}, "cannot be used", "HANDWORK_HOME"),
        (_nothing, {"HANDWORK_HOME": "/dev/null/handwork"}, "cannot be used (Not a directory)", "HANDWORK_HOME"),
        (_nothing, {"HANDWORK_HOME": "~nobody-has-this-name"}, "no folder that can be found", "whole path"),
    ],
)
async def test_a_home_or_store_that_cannot_be_used_is_two_lines_and_2(
    damage: Damage, environ: dict[str, str], what: str, do: str, home: Path, workspace: Path
) -> None:
    damage(home)
    async with StrictServer([]) as server:
        ended = await handwork(
            "run", "Hello", "--model", "openai:any", "--base-url", server.url, cwd=workspace, **environ
        )
        assert not server.requests
    _check(ended, 2, what, do)


@pytest.mark.parametrize("damage", [_newer, _others, _broken, _folder])
async def test_looking_at_sessions_says_the_same(damage: Damage, home: Path, workspace: Path) -> None:
    damage(home)
    _check(await handwork("sessions", "list", cwd=workspace), 2, "store.db", "")


def _forbidden(folder: Path) -> dict[str, str]:
    """A bubblewrap that may not make namespaces comes first."""
    program = folder / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("backend", "environ", "what", "do"),
    [
        ("bwrap", _forbidden, "The bubblewrap sandbox does not start here", "--sandbox host"),
        ("docker", lambda folder: {"DOCKER_HOST": f"unix://{folder}/none"}, "ocker", ""),
        ("daytona", lambda folder: {"DAYTONA_API_KEY": ""}, "The daytona backend needs", "et"),
    ],
)
async def test_a_sandbox_that_this_machine_cannot_start_is_2_before_a_request_is_paid_and_a_session_begun(
    backend: str, environ: Callable[[Path], dict[str, str]], what: str, do: str, home: Path, workspace: Path
) -> None:
    async with StrictServer([]) as server:
        options = ("--model", "openai:any", "--base-url", server.url, "--sandbox", backend)
        ended = await handwork("run", "Hello", *options, cwd=workspace, **environ(home))
        assert not server.requests
    _check(ended, 2, what, do)
    assert "no sessions yet" in (await handwork("sessions", "list", cwd=workspace)).err


_NOBODY = """
import os, sys
import handwork.cli.app
del os.environ["HOME"], os.environ["HANDWORK_HOME"]
os.setresuid(54321, 0, 0)  # whoever it is by the accounts, it may still read a checkout that only root may
sys.exit(handwork.cli.app.run_command_line(["sessions", "list"]))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody without an account")
async def test_an_account_without_a_home_is_two_lines_and_2(workspace: Path) -> None:
    ended = await _run([sys.executable, "-c", _NOBODY], workspace, {})
    _check(ended, 2, "no home folder", "set HOME")


@pytest.mark.parametrize("size", ["16k", "64k"])
async def test_a_full_disk_is_two_lines_and_1_whenever_it_is_noticed(
    size: str, workspace: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    async with StrictServer(lambda request: "never") as server:
        arguments = ["run", "Hello", "--model", "openai:any", "--base-url", server.url]
        ended = await _on_disk(size, disk, arguments, workspace)
    _check(ended, 1, "store.db failed", "disk")


async def test_a_read_only_disk_is_two_lines_and_2(workspace: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    ended = await _on_disk(
        "1m,ro", disk, ["run", "Hello", "--model", "openai:any", "--base-url", "http://127.0.0.1:9/v1"], workspace
    )
    _check(ended, 2, "Read-only file system", "HANDWORK_HOME")


async def test_a_full_disk_behind_standard_output_is_said(workspace: Path) -> None:
    ended = await _run(["sh", "-c", f"exec {' '.join(COMMAND)} doctor --json >/dev/full"], workspace, dict(os.environ))
    assert ended.code == 1
    assert "standard output cannot be written: No space left on device" in ended.err
    assert "Traceback" not in ended.err


async def test_a_disk_that_filled_up_since_the_store_was_made_is_said_to_be_full(
    workspace: Path, tmp_path: Path
) -> None:
    """There SQLite says `disk I/O error`: its shared memory finds no room."""
    if not _can_mount():
        pytest.skip("no file system can be mounted here")
    make = "import pathlib, sys; from handwork.store.sqlite import Store; Store.open(pathlib.Path(sys.argv[1])).close()"
    script = (
        'mount -t tmpfs -o size=400k none "$HANDWORK_HOME" && "$0" -c "$1" "$HANDWORK_HOME/store.db" && shift && '
        '{ cat /dev/zero >"$HANDWORK_HOME/fill" 2>/dev/null; exec "$@"; }'
    )
    arguments = [sys.executable, make, *COMMAND, "sessions", "list"]
    environ = dict(os.environ) | {"HANDWORK_HOME": str(tmp_path)}
    _check(
        await _run(["unshare", "-rm", "sh", "-c", script, *arguments], workspace, environ),
        1,
        "No space left on device",
        "the disk (or the quota) is full: free some space",
    )


def _check(ended: Ended, code: int, what: str, do: str) -> None:
    assert ended.code == code, ended.err
    assert ended.out == ""
    first, second = ended.err.strip().splitlines()
    assert first.startswith("handwork: ")
    assert what in first
    assert second.startswith("→ ")
    assert do in second


async def _on_disk(options: str, disk: Path, arguments: list[str], workspace: Path) -> Ended:
    """Run the command with its home on a small file system of its own."""
    if not _can_mount():
        pytest.skip("no file system can be mounted here")
    script = f'mount -t tmpfs -o size={options} none "$0" && exec "$@"'
    environ = dict(os.environ) | {"HANDWORK_HOME": str(disk / "home")}
    return await _run(["unshare", "-rm", "sh", "-c", script, str(disk), *COMMAND, *arguments], workspace, environ)


@cache
def _can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    return tried.returncode == 0


async def _run(command: list[str], cwd: Path, environ: dict[str, str]) -> Ended:
    return await handwork(cwd=cwd, program=command, **environ)
