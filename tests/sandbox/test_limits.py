"""What uses too much is ended, the rest goes on, and the model is told: in the real sandbox, with limits that harm nothing."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from handwork.config import SandboxSettings
from handwork.sandbox.bwrap import BwrapSandbox, find_bwrap
from handwork.sandbox.client import SupervisedSandbox
from handwork.sandbox.host import HostSandbox
from handwork.sandbox.limits import Limits, fit_memory, limits_of, size

_MEMORY = 300 << 20
_LIMITS = Limits(processes=60, memory=_MEMORY, file=64 << 20, disk_reserve=1 << 20)


class Held:
    """A sandbox with small limits, and what it reported to the user."""

    def __init__(self, kind: type[BwrapSandbox] | type[HostSandbox], base: Path, limits: Limits = _LIMITS) -> None:
        self.notices: list[str] = []
        self.sandbox: SupervisedSandbox = kind(
            base / "workspace", base / "artifacts", lambda level, text: self.notices.append(text), limits=limits
        )

    async def python(self, code: str, seconds: float = 60) -> tuple[int, bytes, list[str]]:
        """Exit code, output and what the model is told after the call."""
        result = await self.sandbox.exec(["python3", "-S", "-c", code], timeout=seconds)
        assert not result.timed_out
        return result.exit_code, result.output, list(await self.sandbox.after_call())


@pytest.fixture(params=[BwrapSandbox, HostSandbox])
async def held(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Held]:
    held = Held(request.param, tmp_path)
    yield held
    await held.sandbox.close()


@pytest.fixture
async def inside(tmp_path: Path) -> AsyncIterator[Held]:
    held = Held(BwrapSandbox, tmp_path)
    yield held
    await held.sandbox.close()


async def _works(held: Held) -> None:
    assert (await held.python("print(6 * 7)")) == (0, b"42\n", [])


# ---- memory

_HOG = "x = [bytearray(b'x') * (1 << 20) for _ in range(1500)]"
_CROWD = (
    "import os, time\n"
    "for _ in range(30):\n  if os.fork() == 0:\n    x = bytearray(b'x') * (40 << 20); time.sleep(100)\n"
    "time.sleep(100)"
)
_SHARED = (
    "import mmap, os, time\nx = mmap.mmap(-1, 1500 << 20)\n"
    "for at in range(0, 1500 << 20, 4096): x[at] = 1\ntime.sleep(100)"
)
_MANY_FILES = (
    "import os, time\nfor _ in range(30):\n  f = os.memfd_create('hidden')\n  for _ in range(50): os.write(f, bytes(1 << 20))\n"
    "time.sleep(100)"
)
_HOGS = {
    "one program": _HOG,
    "many programs": _CROWD,
    "memory that could be shared": _SHARED,
    "files in memory": _MANY_FILES,
}


@pytest.mark.parametrize("hog", _HOGS)
async def test_a_memory_hog_is_ended_and_the_model_is_told(held: Held, hog: str) -> None:
    code, _output, told = await held.python(_HOGS[hog])
    assert code == -signal.SIGKILL
    (sentence,) = told
    assert "memory limit of 300 MiB" in sentence
    assert sentence in held.notices
    await _works(held)


async def test_segments_that_nobody_uses_are_removed_and_who_makes_them_is_ended(inside: Held) -> None:
    code = (
        "import ctypes, time\nlibc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p\n"
        "for _ in range(30):\n  number = libc.shmget(0, 50 << 20, 0o1600)\n  place = libc.shmat(number, None, 0)\n"
        "  ctypes.memset(ctypes.c_void_p(place), 1, 50 << 20); libc.shmdt(ctypes.c_void_p(place))\n"
        "time.sleep(100)"
    )
    exit_code, _output, told = await inside.python(code)
    assert exit_code == -signal.SIGKILL
    assert "memory limit of 300 MiB" in told[0]
    result = await inside.sandbox.exec(["bash", "-c", "tail -n +2 /proc/sysvipc/shm | wc -l"])
    assert int(result.output) <= 3  # what was made while the rest was removed
    await _works(inside)


async def test_a_file_in_memory_that_is_mapped_counts_once(held: Held) -> None:
    code = (
        "import mmap, os, time\nmaps = []\n"
        "for _ in range(4):\n  f = os.memfd_create('shown'); os.ftruncate(f, 50 << 20); maps.append(mmap.mmap(f, 50 << 20))\n"
        "def touch():\n  for each in maps:\n    for at in range(0, 50 << 20, 4096): each[at] = 1\n"
        "touch()\nfor _ in range(3):\n  if os.fork() == 0:\n    touch(); time.sleep(2); os._exit(0)\n"
        "for _ in range(3): os.wait()\nprint('fine')"
    )
    assert await held.python(code) == (0, b"fine\n", [])


async def test_a_hog_in_a_shell_is_ended_alone_and_the_shell_lives_on(held: Held) -> None:
    shell = await held.sandbox.spawn(["bash"], stdin=True)
    await shell.write(f"python3 -S -c '{_HOG.replace(chr(39), chr(34))}'; echo it ended with $?\n".encode())
    output = b""
    while b"ended with" not in output:
        output += await shell.read()
    assert b"it ended with 137" in output
    assert shell.returncode is None
    (sentence,) = await held.sandbox.after_call()
    assert "memory limit" in sentence
    assert list(await held.sandbox.after_call()) == []


async def test_others_are_spared_when_one_is_ended(held: Held) -> None:
    other = await held.sandbox.spawn(["cat"], stdin=True)
    assert (await held.python(_HOG))[0] == -signal.SIGKILL
    await other.write(b"still here")
    assert await other.read() == b"still here"


async def test_memory_that_forks_share_counts_once(held: Held) -> None:
    code = (
        "import os\nx = bytearray(b'x') * (200 << 20)\ndone, ready = os.pipe(); go, start = os.pipe()\n"
        "for _ in range(6):\n  if os.fork() == 0:\n    os.write(ready, b'x'); os.read(go, 1); os._exit(0)\n"
        "for _ in range(6): os.read(done, 1)\n"
        "import time; time.sleep(2.5)\nos.write(start, bytes(6))\nfor _ in range(6): os.wait()\nprint('fine')"
    )
    assert await held.python(code) == (0, b"fine\n", [])


async def test_a_large_file_that_is_mapped_is_no_memory_hog(held: Held) -> None:
    await held.sandbox.exec(["python3", "-c", "open('large', 'wb').truncate(60 << 20)"])
    code = (
        "import mmap, time\nfile = open('large', 'rb')\nmaps = [mmap.mmap(file.fileno(), 0, prot=1) for _ in range(8)]\n"
        "print(sum(len(each.read()) for each in maps) >> 20)\ntime.sleep(2.5)"
    )
    assert await held.python(code) == (0, b"480\n", [])


# ---- processes


async def test_a_bomb_of_threads_is_ended_and_the_model_is_told(held: Held) -> None:
    code = (
        "import threading, time\ntry:\n"
        "  for _ in range(20000): threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n"
        "except RuntimeError: pass  # the kernel has a last bound\n"
        "time.sleep(100)"
    )
    exit_code, _output, told = await held.python(code)
    assert exit_code == -signal.SIGKILL
    assert "more than 480 threads" in told[0]
    await _works(held)


# ---- output


async def test_a_million_lines_are_kept_at_both_ends(held: Held) -> None:
    result = await held.sandbox.exec(["seq", "1000000"], max_output=10_000)
    assert result.output.startswith(b"1\n2\n")
    assert result.output.endswith(b"999999\n1000000\n")
    assert len(result.output) < 10_100
    assert result.omitted > 6_000_000


async def test_any_bytes_are_output(held: Held) -> None:
    everything = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 2048)"
    assert (await held.python(everything))[1] == bytes(range(256)) * 2048
    assert (await held.sandbox.exec(["head", "-c", "100000", "/dev/zero"])).output == bytes(100_000)


# ---- files


async def test_a_file_that_grows_too_large_stops_its_program(held: Held) -> None:
    code, _output, _told = await held.python("f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20)); f.flush()")
    assert code == 1  # python ignores the signal and has the error instead
    result = await held.sandbox.exec(["bash", "-c", "head -c 100000000 /dev/zero > big2; echo $?"])
    assert result.output != b"0\n"
    assert max(entry.size for entry in await held.sandbox.list(".")) <= 64 << 20
    await _works(held)


async def test_as_many_processors_as_allowed_are_used(tmp_path: Path) -> None:
    limits = Limits(processes=60, memory=_MEMORY, cpus=1)
    sandbox = BwrapSandbox(tmp_path / "workspace", tmp_path / "artifacts", lambda level, text: None, limits=limits)
    try:
        assert (await sandbox.exec(["nproc"])).output == b"1\n"
    finally:
        await sandbox.close()


# ---- folders in memory


@pytest.mark.parametrize("folder", ["/tmp", "/home/agent", "/dev/shm"])
async def test_a_folder_in_memory_can_be_filled_only_so_far(inside: Held, folder: str) -> None:
    code = (
        f"import os\nos.chdir('{folder}')\nwritten = 0\ntry:\n  for at in range(300):\n"
        "    with open(str(at), 'wb', 0) as f: f.write(bytes(1 << 20))\n    written += 1\n"
        "except OSError as error: print(error.errno, written)\n"
        "for at in range(written): os.remove(str(at))\nopen('small', 'w').write('fits')"
    )
    assert await inside.python(code) == (0, b"28 75\n", [])


async def test_a_bwrap_that_knows_no_sizes_still_starts(tmp_path: Path) -> None:
    found = find_bwrap()
    program = tmp_path / "old-bwrap"
    program.write_text(
        f'#!/bin/sh\nfor word; do [ "$word" = --size ] && {{ echo "bwrap: Unknown option --size" >&2; exit 1; }}; done\n'
        f'exec {found} "$@"\n'
    )
    program.chmod(0o755)
    sandbox = BwrapSandbox(tmp_path / "workspace", tmp_path / "artifacts", lambda level, text: None, program=program)
    try:
        assert (await sandbox.exec(["bash", "-c", "echo x > /tmp/file; cat /tmp/file"])).output == b"x\n"
    finally:
        await sandbox.close()


async def test_nothing_else_that_lies_in_memory_can_be_written(inside: Held) -> None:
    for folder in ("/", "/dev", "/run", "/var/tmp", "/etc", "/home", "/usr/local"):
        result = await inside.sandbox.exec(["bash", "-c", f"echo x > {folder}/handwork-file"])
        assert result.exit_code == 1, folder
        assert b"Read-only" in result.stderr or b"denied" in result.stderr, folder
    code = "import multiprocessing.shared_memory as m; s = m.SharedMemory(create=True, size=4096); s.close(); s.unlink(); print('fine')"
    assert (await inside.sandbox.exec(["python3", "-c", code])).output == b"fine\n"
    terminal = await inside.sandbox.spawn(["bash", "-c", "echo x > /dev/null; tty"], pty=True)
    assert b"/dev/pts/" in await terminal.read()


# ---- the disk


def _free(place: Path) -> int:
    disk = os.statvfs(place)
    return disk.f_bavail * disk.f_frsize


_FILL = "f = open('{name}', 'wb')\nfor _ in range(800): f.write(bytes(1 << 20)); f.flush()"


@pytest.fixture(params=[BwrapSandbox, HostSandbox])
async def filling(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Held]:
    """The disk counts as full when a little of what is free now was taken."""
    limits = Limits(processes=60, memory=_MEMORY, disk_reserve=_free(tmp_path) - (200 << 20))
    filling = Held(request.param, tmp_path, limits)
    yield filling
    await filling.sandbox.close()


async def test_who_fills_the_disk_is_ended_and_files_can_still_be_removed(filling: Held) -> None:
    code, _output, told = await filling.python(_FILL.format(name="big"))
    assert code == -signal.SIGKILL
    assert "were left on the disk of the workspace" in told[0]
    (entry,) = await filling.sandbox.list(".")
    assert entry.size < 800 << 20
    assert (await filling.python("import os; os.remove('big'); print('removed')")) == (0, b"removed\n", [])


async def test_many_writers_are_ended_together_and_who_does_not_write_goes_on(filling: Held) -> None:
    other = await filling.sandbox.spawn(["cat"], stdin=True)
    script = f'for name in a b c d; do python3 -S -c "{_FILL.format(name="$name")}" & done; wait; echo shell lives'
    result = await filling.sandbox.exec(["bash", "-c", script], timeout=60)
    assert result.output == b"shell lives\n"
    assert any("disk of the workspace" in text for text in await filling.sandbox.after_call())
    await other.write(b"still here")
    assert await other.read() == b"still here"


# ---- what is allowed


def test_the_limits_fit_the_machine_if_nothing_is_configured() -> None:
    limits = limits_of(SandboxSettings())
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert limits.processes == 512
    assert limits.memory == fit_memory() < whole
    assert limits.room < limits.memory
    assert limits.cpus is None


def test_configured_limits_hold() -> None:
    settings = SandboxSettings(
        memory_limit="2g", cpu_limit=1.5, process_limit=100, file_limit="1 GB", disk_reserve="100m"
    )
    assert limits_of(settings) == Limits(100, 2 << 30, 1 << 30, 100 << 20, 1.5)


@pytest.mark.parametrize("wanted", [True, False])
def test_what_was_written_for_containers_does_not_strangle_the_local_sandbox(wanted: bool) -> None:
    settings = SandboxSettings(use_sandbox=wanted, memory_limit="512m", cpu_limit=1.0)
    assert limits_of(settings) == limits_of(SandboxSettings())


@pytest.mark.parametrize(("number", "text"), [(6 << 30, "6 GiB"), (300 << 20, "300 MiB"), (100, "100 bytes")])
def test_sizes_are_told_in_words(number: int, text: str) -> None:
    assert size(number) == text


@pytest.mark.parametrize("kind", [BwrapSandbox, HostSandbox])
async def test_a_disk_with_less_than_is_to_stay_free_is_told_once(
    kind: type[BwrapSandbox] | type[HostSandbox], tmp_path: Path
) -> None:
    held = Held(kind, tmp_path, dataclasses.replace(_LIMITS, disk_reserve=500 << 40))
    try:
        await _works(held)
        await _works(held)
        (told,) = [text for text in held.notices if "disk_reserve" in text]
        assert "less than the 500 TiB" in told
    finally:
        await held.sandbox.close()


async def test_a_disk_with_room_is_not_spoken_of(held: Held) -> None:
    await _works(held)
    assert not any("disk" in text for text in held.notices)
