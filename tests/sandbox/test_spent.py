"""What programs used: of the finished, of the living, and of all that they started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE

import pytest

from handwork.sandbox.base import Process, Spent
from handwork.sandbox.client import SupervisedSandbox
from handwork.sandbox.inside import processes

_BURN = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
_HOLD = "x = bytearray(b'x') * (80 << 20)\n"


def _python(code: str) -> list[str]:
    return ["python3", "-S", "-c", code]


async def _until_output(process: Process, text: bytes) -> None:
    seen = b""
    while text not in seen:
        data = await process.read()
        assert data, seen
        seen += data


async def test_a_command_tells_its_processor_time_and_its_largest_memory(sandbox: SupervisedSandbox) -> None:
    spent = (await sandbox.exec(_python(_BURN + _HOLD))).spent
    assert 0.3 <= spent.cpu_seconds < 5
    assert 80 << 20 <= spent.peak_memory < 160 << 20
    small = (await sandbox.exec(["true"])).spent
    assert small.cpu_seconds < 0.2
    assert small.peak_memory < 40 << 20


_CHILDREN = {
    "waited for": "run([sys.executable, '-S', '-c', burn])",
    "an orphan": "if os.fork() == 0:\n  if os.fork() == 0:\n    exec(burn); os.write(ready, b'x')\n  os._exit(0)\n"
    "os.wait(); os.read(done, 1)",
    "killed": "pid = os.fork()\nif pid == 0:\n  exec(burn); os.write(ready, b'x'); time.sleep(100)\n"
    "os.read(done, 1); os.kill(pid, 9); os.wait()",
    "left to be killed": "if os.fork() == 0:\n  os.setsid(); exec(burn); os.write(ready, b'x'); time.sleep(100)\nos.read(done, 1)",
}


@pytest.mark.parametrize("child", _CHILDREN)
async def test_what_children_used_counts_however_they_ended(sandbox: SupervisedSandbox, child: str) -> None:
    head = f"import os, sys, time; from subprocess import run; burn = {_BURN!r}; done, ready = os.pipe()\n"
    assert (await sandbox.exec(_python(head + _CHILDREN[child]))).spent.cpu_seconds >= 0.3


async def test_a_command_that_is_killed_at_its_time_tells_what_it_used(sandbox: SupervisedSandbox) -> None:
    result = await sandbox.exec(_python(_HOLD + "while True: pass"), timeout=1.5)
    assert result.timed_out
    assert result.spent.cpu_seconds > 0.02
    assert result.spent.peak_memory >= 80 << 20


async def test_a_living_program_tells_what_it_used_so_far(sandbox: SupervisedSandbox) -> None:
    process = await sandbox.spawn(["python3", "-S", "-i", "-q"], stdin=True)
    await process.write(b"print('up')\n")
    await _until_output(process, b"up")
    before = await process.spent()
    await process.write(f"exec({_BURN + _HOLD!r}); print('done')\n".encode())
    await _until_output(process, b"done")
    after = await process.spent()
    assert after.cpu_seconds - before.cpu_seconds >= 0.25
    assert after.peak_memory >= 80 << 20
    again = await process.spent()
    assert again.cpu_seconds >= after.cpu_seconds
    await process.kill()
    last = await process.spent()
    assert last.cpu_seconds >= again.cpu_seconds
    assert last.peak_memory >= after.peak_memory


async def test_living_children_of_a_shell_count(sandbox: SupervisedSandbox) -> None:
    shell = await sandbox.spawn(["bash"], stdin=True)
    await shell.write(b"(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo do''ne; read x) <&0\n")
    await _until_output(shell, b"done")
    assert (await shell.spent()).cpu_seconds >= 0.1


async def test_what_was_spent_is_known_after_the_sandbox_is_gone(sandbox: SupervisedSandbox) -> None:
    process = await sandbox.spawn(["sleep", "1000"])
    await sandbox.close()
    assert isinstance(await process.spent(), Spent)


async def test_a_tree_is_found_by_its_children_as_by_the_table_of_all() -> None:
    code = (
        "import os, sys, threading, time\n"
        "if os.fork() == 0: time.sleep(100)\n"
        "def start():\n  if os.fork() == 0:\n    if os.fork() == 0: print('up', flush=True)\n    time.sleep(100)\n  time.sleep(100)\n"
        "threading.Thread(target=start, daemon=True).start(); sys.stdin.read()"
    )
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-W", "ignore", "-c", code, stdin=PIPE, stdout=PIPE, start_new_session=True
    )
    assert program.stdout
    try:
        assert await program.stdout.readline() == b"up\n"
        found = processes.below(program.pid)
        assert len(found) == 3
        assert set(found) == set(processes.descendants(processes.table(), program.pid))
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        await program.wait()
    assert processes.below(program.pid) == []
