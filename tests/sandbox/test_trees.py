"""Whole trees of processes end: on time-out, on cancel, on close, over the limit, and when we are killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from handwork.config import SandboxSettings
from handwork.errors import SandboxError
from handwork.sandbox.bwrap import BwrapSandbox
from handwork.sandbox.client import SupervisedSandbox
from handwork.sandbox.host import HostSandbox
from handwork.sandbox.limits import Limits
from handwork.sandbox.open import open_sandbox

from .conftest import Opener

_BACKENDS = {"bwrap": BwrapSandbox, "host": HostSandbox}


def _bash(script: str) -> list[str]:
    return ["bash", "-c", script]


def _marked(mark: str) -> list[psutil.Process]:
    """The living processes of this machine with `mark` among their arguments."""
    return [process for process in psutil.process_iter(["cmdline"]) if mark in (process.info["cmdline"] or ())]


async def _until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        # What is waited for is the kernel's: nothing tells of it.
        for _ in iter(lambda: bool(condition()), True):
            await asyncio.sleep(0.01)


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> str:
    """A number of seconds that no other sleep of this machine has."""
    return f"9{os.getpid()}{abs(hash(request.node.nodeid)) % 10_000_000}"


def _family(mark: str) -> str:
    """Starts a plain child, a daemon (twice forked, in its own session) and waits."""
    daemon = f"(setsid sleep {mark} > /dev/null 2>&1 < /dev/null &)"
    return f"sleep {mark} & {daemon}; (trap '' TERM HUP; exec setsid sleep {mark}) & sleep {mark}"


async def test_a_timeout_ends_the_whole_tree(sandbox: SupervisedSandbox, mark: str) -> None:
    await sandbox.exec(["true"])
    result = await sandbox.exec(_bash(f"echo begun; {_family(mark)}"), timeout=0.5)
    assert result.timed_out
    assert result.exit_code == -signal.SIGKILL
    assert result.output == b"begun\n"
    assert _marked(mark) == []


async def test_a_cancel_ends_the_whole_tree(sandbox: SupervisedSandbox, mark: str) -> None:
    task = asyncio.create_task(sandbox.exec(_bash(_family(mark))))
    await _until(lambda: len(_marked(mark)) == 4)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _marked(mark) == []


async def test_a_cancel_at_any_moment_of_the_start_leaves_nothing(sandbox: SupervisedSandbox, mark: str) -> None:
    await sandbox.exec(["true"])
    for turns in range(30):
        start = sandbox.exec if turns % 2 else sandbox.spawn
        task = asyncio.ensure_future(start(["sleep", mark]))
        for _ in range(turns // 2):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            await task.result().kill()
    assert _marked(mark) == []


async def test_closing_ends_everything(sandbox: SupervisedSandbox, mark: str) -> None:
    await sandbox.spawn(_bash(_family(mark)))
    await _until(lambda: len(_marked(mark)) == 4)
    await sandbox.close()
    assert _marked(mark) == []
    await sandbox.close()


async def test_a_daemon_of_a_command_ends_with_the_command(sandbox: SupervisedSandbox, mark: str) -> None:
    await sandbox.exec(_bash(f"setsid sleep {mark} > /dev/null 2>&1 &"))
    assert _marked(mark) == []


async def test_kill_spares_what_is_kept_and_the_program_itself(sandbox: SupervisedSandbox, mark: str) -> None:
    shell = await sandbox.spawn(["bash"], stdin=True)
    await shell.write(f"(sleep {mark}1; true) & echo started\n".encode())
    assert await shell.read() == b"started\n"
    await _until(lambda: len(_marked(f"{mark}1")) == 1)
    before = await shell.descendants()
    assert len(before) == 2
    await shell.write(f"{_family(mark + '2')}\n".encode())
    await _until(lambda: len(_marked(f"{mark}2")) == 4)
    await shell.kill(keep=[shell.pid, *before])
    assert _marked(f"{mark}2") == []
    assert len(_marked(f"{mark}1")) == 1
    assert set(await shell.descendants()) == set(before)
    await shell.write(b"echo alive\n")
    output = b""
    while b"alive" not in output:
        output += await shell.read()
    await shell.kill()
    assert _marked(f"{mark}1") == []


async def test_kill_ends_the_program_too_unless_it_is_kept_and_what_it_left_is_still_read(
    sandbox: SupervisedSandbox, mark: str
) -> None:
    shell = await sandbox.spawn(["bash"], stdin=True)
    job = f"(until [ -e go ]; do sleep 0.05; done; echo later; sleep {mark}1) & echo started\n"
    await shell.write(job.encode())
    assert await shell.read() == b"started\n"
    before = await shell.descendants()
    await shell.write(f"sleep {mark}2; echo ran on\n".encode())
    await _until(lambda: len(_marked(f"{mark}2")) == 1)
    await shell.kill(keep=before)
    assert await shell.wait() == -9
    assert _marked(f"{mark}2") == []
    await sandbox.write("go", b"")
    assert await shell.read(beyond=True) == b"later\n"
    await shell.kill()
    assert await shell.read(beyond=True) == b""


async def test_keeping_only_the_program_ends_all_below_it(sandbox: SupervisedSandbox, mark: str) -> None:
    shell = await sandbox.spawn(["bash"], stdin=True)
    await shell.write(f"{_family(mark)}\n".encode())
    await _until(lambda: len(_marked(mark)) == 4)
    await shell.kill(keep=[shell.pid])
    assert await shell.descendants() == []
    assert shell.returncode is None


async def test_a_job_whose_leader_is_killed_from_inside_ends_too(sandbox: SupervisedSandbox, mark: str) -> None:
    process = await sandbox.spawn(_bash(f"setsid sleep {mark} & read; kill -9 $PPID; sleep {mark}"), stdin=True)
    await process.write(b"\n")
    assert await process.wait() == -signal.SIGKILL
    await _until(lambda: _marked(mark) == [])
    assert (await sandbox.exec(["echo", "fine"])).output == b"fine\n"


async def test_a_leader_that_is_stopped_from_inside_does_not_save_its_job(
    sandbox: SupervisedSandbox, mark: str
) -> None:
    result = await sandbox.exec(_bash(f"kill -STOP $PPID; setsid sleep {mark} & sleep {mark}"), timeout=0.5)
    assert result.timed_out
    assert _marked(mark) == []


@pytest.mark.parametrize("backend", _BACKENDS)
async def test_a_fork_bomb_is_ended_and_the_others_go_on(backend: str, tmp_path: Path) -> None:
    notices: list[str] = []
    sandbox = _BACKENDS[backend](
        tmp_path / "workspace",
        tmp_path / "artifacts",
        lambda level, text: notices.append(text),
        limits=Limits(60, 1 << 30),
    )
    try:
        other = await sandbox.spawn(["cat"], stdin=True)
        async with asyncio.timeout(60):
            # Of bounded depth: where the guard fails, the machine should not.
            bomb = (
                "bomb() { if [ $1 = 0 ]; then sleep 100; else bomb $(($1 - 1)) & bomb $(($1 - 1)) & wait; fi; }; bomb 9"
            )
            result = await sandbox.exec(_bash(bomb), timeout=50)
        assert not result.timed_out
        assert result.exit_code == -signal.SIGKILL
        assert b"more than 60 processes" in result.stderr
        assert any("more than 60 processes" in text for text in notices)
        await other.write(b"still here")
        assert await other.read() == b"still here"
        assert await other.descendants() == []
    finally:
        await sandbox.close()


def _supervisor(sandbox: SupervisedSandbox) -> psutil.Process:
    """The first in the tree that runs our code; its forks, the leaders, come below it."""
    children = psutil.Process().children(recursive=True)
    return next(
        child for child in children if sandbox.workspace in " ".join(child.cmdline()) and child.name() != "bwrap"
    )


async def test_without_its_supervisor_everything_fails_and_the_next_use_starts_anew(
    sandbox: SupervisedSandbox, mark: str
) -> None:
    process = await sandbox.spawn(_bash(f"setsid sleep {mark} & exec sleep {mark}"))
    await _until(lambda: len(_marked(mark)) == 2)
    reading, waiting = asyncio.ensure_future(process.read()), asyncio.ensure_future(process.wait())
    running = asyncio.ensure_future(sandbox.exec(["sleep", mark]))
    await _until(lambda: len(_marked(mark)) == 3)
    assert sandbox.generation == 0
    _supervisor(sandbox).kill()
    for future in (waiting, running):
        with pytest.raises(SandboxError, match="gone"):
            await future
    await asyncio.wait([reading])  # its end may reach us before the supervisor's does
    assert reading.exception() is not None or reading.result() == b""
    with pytest.raises(SandboxError, match="gone"):
        await process.read()
    await process.kill()
    assert (await sandbox.exec(["echo", "again"])).output == b"again\n"
    assert sandbox.generation == 1
    await _until(lambda: _marked(mark) == [])


_PARENT = """
import asyncio, sys
from pathlib import Path
from handwork.config import SandboxSettings
from handwork.sandbox.open import open_sandbox

async def main(base, backend, mark):
    sandbox = open_sandbox(SandboxSettings(backend=backend), workspace=base / "w", artifacts=base / "a", notify=lambda level, text: None)
    await sandbox.spawn(["bash", "-c", f"setsid sleep {mark} & sleep {mark}"])
    temporary = (await sandbox.exec(["bash", "-c", "echo -n $TMPDIR"])).output.decode()
    print("up", temporary, flush=True)
    await asyncio.sleep(1000)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
"""


@pytest.mark.parametrize("backend", _BACKENDS)
async def test_kill_9_of_our_process_leaves_nothing(backend: str, tmp_path: Path, mark: str) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _PARENT, str(tmp_path), backend, mark, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    line = (await asyncio.wait_for(parent.stdout.readline(), 60)).decode().split()
    assert line[0] == "up"
    await _until(lambda: len(_marked(mark)) >= 3)  # the sleeps, and the parent itself
    assert any(child.name() == "sleep" for child in _marked(mark))
    parent.kill()
    await parent.wait()
    await _until(lambda: _marked(mark) == [])
    if backend == "host":
        await _until(lambda: not Path(line[1]).exists())
    await _until(
        lambda: not [p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(p.info["cmdline"] or ())]
    )


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_first_uses_at_the_same_time_share_one_start(opener: Opener) -> None:
    sandbox = opener("bwrap")
    await asyncio.gather(*(sandbox.exec(["bash", "-c", f"echo {number} > ~/{number}"]) for number in range(8)))
    assert {str(number) for number in range(8)} <= {entry.path for entry in await sandbox.list("/home/agent")}
    assert sandbox.generation == 0


async def test_nothing_is_started_or_made_before_the_first_use(opener: Opener, tmp_path: Path) -> None:
    before = psutil.Process().children()
    for backend in ("bwrap", "host", "landlock"):
        await opener(backend).close()
    auto = open_sandbox(
        SandboxSettings(backend="auto"),
        workspace=tmp_path / "workspace",
        artifacts=tmp_path / "artifacts",
        notify=lambda level, text: None,
    )
    await auto.close()
    assert psutil.Process().children() == before
    assert _names(tmp_path) == []


async def test_closing_during_the_start_leaves_nothing(opener: Opener) -> None:
    for turns in range(8):
        sandbox = opener("bwrap")
        use = asyncio.ensure_future(sandbox.exec(["true"]))
        for _ in range(turns):
            await asyncio.sleep(0)
        await sandbox.close()
        await asyncio.wait([use])
        assert not [child for child in psutil.Process().children() if sandbox.workspace in " ".join(child.cmdline())]
        if not use.cancelled():
            use.exception()


async def test_a_close_that_is_cancelled_still_closes(sandbox: SupervisedSandbox, mark: str) -> None:
    await sandbox.spawn(["sleep", mark])
    closing = asyncio.ensure_future(sandbox.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert _marked(mark) == []
