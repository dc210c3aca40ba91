"""Programs that do not want to end: none survives a time-out, a cancel or a close, and nothing is left of many calls."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from handwork.sandbox.client import SupervisedSandbox

_IGNORE = (
    "import os, signal, time\nfor n in range(1, 65):\n"
    "  try: signal.signal(n, signal.SIG_IGN)\n  except (OSError, ValueError): pass\n"
)
_UP = "os.write(1, b'up\\n')\n"
_PROGRAMS = {
    "in a session of its own": "import os, time\nif os.fork() == 0:\n  os.setsid(); " + _UP + "  time.sleep(1000)\ntime.sleep(1000)",
    "twice forked": "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    "
    + _UP
    + "    time.sleep(1000)\n  os._exit(0)\nos.wait(); time.sleep(1000)",
    "ignoring every signal": _IGNORE + _UP + "while True: time.sleep(1)",
    "stopped": "import os, signal, time\nif os.fork() == 0:\n  " + _UP + "  os.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(1000)",
    "stopped with its leader": "import os, signal, time\n" + _UP + "os.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(1000)",
    "holding the pipe": "import os, time\ndone, ready = os.pipe()\nif os.fork() == 0:\n  os.setsid(); "
    + _UP
    + "  os.write(ready, b'x'); time.sleep(1000)\nos.read(done, 1); os._exit(0)",
    "without its first thread": "import ctypes, os, threading, time\nlibc = ctypes.CDLL(None)\n"
    "threading.Thread(target=time.sleep, args=(1000,)).start()\n" + _UP + "libc.pthread_exit(None)",
    "with a name that looks like the end of one": "import ctypes, os, time\n"
    "ctypes.CDLL(None).prctl(15, b'x) Z 1 1 (', 0, 0, 0)\n"
    "if os.fork() == 0: time.sleep(1000)\n" + _UP + "time.sleep(1000)",
    "standing up again": "import os, time\nos.write(1, b'up\\n')\n"
    "def watch(turns):\n  while turns:\n    turns -= 1\n    if os.fork():\n      os.wait()\n    else:\n      os.setsid()\n"
    "  time.sleep(1000)\nwatch(20)",
    "waiting for a child that was made by vfork": "import os, subprocess, sys\n" + _UP + "subprocess.run(['sleep', '1000'])",
    "killing its leader": "import os, signal, time\nif os.fork() == 0:\n  os.setsid(); time.sleep(1000)\n"
    + _UP
    + "os.kill(os.getppid(), signal.SIGSTOP); time.sleep(1000)",
    "adopting orphans": "import ctypes, os, time\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\nif os.fork() == 0:\n"
    "  if os.fork() == 0:\n    os.setsid(); " + _UP + "    time.sleep(1000)\n  os._exit(0)\ntime.sleep(1000)",
    "of low priority": "import os, time\nos.nice(19)\nos.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\n"
    + _UP
    + "while True: pass",
}  # fmt: skip


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> str:
    """A word among the arguments that no other program of this machine has."""
    return f"handwork-{os.getpid()}-{abs(hash(request.node.nodeid))}"


def _command(program: str, mark: str) -> list[str]:
    return ["python3", "-S", "-c", _PROGRAMS[program], mark]


def _living(mark: str) -> list[psutil.Process]:
    """What runs with this mark, or was started by what does; its first thread may be gone."""
    return [process for process in psutil.process_iter(["cmdline"]) if mark in (process.info["cmdline"] or ())]


async def _until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        # What is waited for is the kernel's: nothing tells of it.
        for _ in iter(lambda: bool(condition()), True):
            await asyncio.sleep(0.01)


def _supervised(sandbox: SupervisedSandbox) -> list[psutil.Process]:
    """The processes below us that belong to this sandbox: bwrap, the supervisor, leaders, and what they started."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it is ending
            found += [child] if sandbox.workspace in " ".join(child.cmdline()) else []
    return found


@pytest.mark.parametrize("program", _PROGRAMS)
async def test_a_time_out_ends_what_does_not_want_to_end(sandbox: SupervisedSandbox, program: str, mark: str) -> None:
    await sandbox.exec(["true"])
    before = len(_supervised(sandbox))
    async with asyncio.timeout(30):
        result = await sandbox.exec(_command(program, mark), timeout=1)
    assert b"up" in result.output
    assert _living(mark) == []
    await _until(lambda: len(_supervised(sandbox)) <= before)  # the leader is gone, too
    assert (await sandbox.exec(["echo", "fine"])).output == b"fine\n"


@pytest.mark.parametrize("how", ["kill", "close"])
async def test_all_of_them_end_together(sandbox: SupervisedSandbox, how: str, mark: str) -> None:
    started = []
    for program in _PROGRAMS:
        process = await sandbox.spawn(_command(program, mark))
        assert await process.read() == b"up\n"
        started.append(process)
    if how == "kill":
        await asyncio.gather(*(process.kill() for process in started))
    else:
        await sandbox.close()
    assert _living(mark) == []


async def test_cancelling_all_of_them_leaves_none(sandbox: SupervisedSandbox, mark: str) -> None:
    tasks = [asyncio.create_task(sandbox.exec(_command(program, mark))) for program in _PROGRAMS]
    await _until(lambda: len(_living(mark)) >= len(_PROGRAMS))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert _living(mark) == []


async def test_a_reader_of_the_terminal_ends_with_it(sandbox: SupervisedSandbox, mark: str) -> None:
    code = "import os, signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nprint('up', flush=True)\nopen('/dev/tty').read()"
    process = await sandbox.spawn(["python3", "-S", "-c", code, mark], pty=True)
    assert b"up" in await process.read()
    await process.kill()
    assert _living(mark) == []
    result = await sandbox.exec(["python3", "-S", "-c", code, mark], timeout=20)
    assert not result.timed_out  # without a terminal there is none to read
    assert _living(mark) == []


def _descriptors(pid: int | str) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except PermissionError:
        return -1  # only root may look into a supervisor


async def test_two_hundred_calls_leave_nothing_behind(sandbox: SupervisedSandbox) -> None:
    """Neither descriptors nor children of us or of the supervisor."""

    async def call(number: int) -> None:
        kind = number % 5
        if kind == 0:
            await sandbox.exec(["cat"], stdin=b"x" * 1000)
        elif kind == 1:
            with pytest.raises(FileNotFoundError):
                await sandbox.exec(["no-such-program"])
        elif kind == 2:
            result = await sandbox.exec(["bash", "-c", "setsid sleep 1000 & sleep 1000"], timeout=0.01)
            assert result.timed_out
        else:
            process = await sandbox.spawn(["cat"], stdin=True, pty=kind == 3)
            await process.kill()
            await process.wait()

    for number in range(10):
        await call(number)
    (supervisor,) = _supervised(sandbox)[-1:]
    before = (
        _descriptors("self"),
        _descriptors(supervisor.pid),
        len(_supervised(sandbox)),
        len(psutil.Process().children(recursive=True)),
    )
    for start in range(0, 200, 10):
        await asyncio.gather(*(call(number) for number in range(start, start + 10)))
    await _until(lambda: len(supervisor.children()) == 0)
    after = (
        _descriptors("self"),
        _descriptors(supervisor.pid),
        len(_supervised(sandbox)),
        len(psutil.Process().children(recursive=True)),
    )
    assert all(now <= then for now, then in zip(after, before, strict=True)), (after, before)


async def test_no_descriptor_of_ours_reaches_a_program_however_it_is_started(
    sandbox: SupervisedSandbox, tmp_path: Path
) -> None:
    code = (
        "import os\nfor n in range(3, 1000):\n  if os.path.lexists(f'/proc/self/fd/{n}'): print(n, os.readlink(f'/proc/self/fd/{n}'))\n"
        "print('none else')"
    )
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        outputs = [(await sandbox.exec(["python3", "-S", "-c", code])).output]
        for pty in (False, True):
            process = await sandbox.spawn(["python3", "-S", "-c", code], pty=pty, stdin=not pty)
            outputs.append(await process.read())
            await process.kill()
    assert [output.strip() for output in outputs] == [b"none else"] * 3
