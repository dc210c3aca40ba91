"""Control groups: made only where they are ours to make, with the right limits, and never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from handwork.errors import SandboxError
from handwork.sandbox import cgroup
from handwork.sandbox.inside import landlock
from handwork.sandbox.limits import Limits

from .conftest import Opener

_LIMITS = Limits(processes=60, memory=300 << 20, cpus=1.5)


class Tree:
    """Looks like /sys/fs/cgroup and /proc/self/cgroup, as far as looking for a place goes."""

    def __init__(self, base: Path, *own: str) -> None:
        self.mount, self.own = base / "cgroup", base / "own"
        self.mount.mkdir()
        self.own.write_text("".join(f"{line}\n" for line in own))

    def group(self, path: str, **files: str) -> Path:
        folder = self.mount / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in {"cgroup_procs": "", **files}.items():
            (folder / name.replace("_", ".", 1)).write_text(text)
        return folder

    def places(self, limits: Limits = _LIMITS) -> list[tuple[Path, dict[str, str]]]:
        return list(cgroup.places(limits.words(), self.mount, self.own))


def _mark(folder: Path) -> None:
    try:
        os.setxattr(folder, "user.delegate", b"1")
    except OSError:
        pytest.skip("this file system keeps no marks")


@pytest.fixture
def user_scope(tmp_path: Path) -> Tree:
    """A terminal of a desktop under systemd: its scope lies in a slice that is the user's own."""
    tree = Tree(tmp_path, "0::/user.slice/app.slice/terminal.scope")
    tree.group("", cgroup_controllers="cpu memory pids", cgroup_subtree_control="cpu memory pids")
    tree.group("user.slice", cgroup_subtree_control="memory pids", memory_max="max")
    _mark(tree.group("user.slice/app.slice", cgroup_subtree_control="memory pids", memory_max="max"))
    tree.group("user.slice/app.slice/terminal.scope", cgroup_subtree_control="", memory_max="max")
    return tree


def test_the_group_stands_in_the_nearest_part_that_was_given_to_us(user_scope: Tree) -> None:
    ((parent, wanted),) = user_scope.places()
    assert parent == user_scope.mount / "user.slice/app.slice"
    assert wanted == {
        "memory.max": str(300 << 20),
        "memory.swap.max": "0",
        "pids.max": "960",
        "cpu.max": "150000 100000",
    }


def test_nobody_gets_out_of_a_limit_by_it(user_scope: Tree) -> None:
    user_scope.group("user.slice/app.slice/terminal.scope", memory_max=str(100 << 20))
    ((_parent, wanted),) = user_scope.places()
    assert wanted["memory.max"] == str(100 << 20)


def test_what_root_only_manages_for_others_is_left_alone(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "0::/system.slice/ssh.service")
    tree.group("", cgroup_controllers="memory pids", cgroup_subtree_control="")
    tree.group("system.slice", cgroup_subtree_control="memory pids", memory_max="max")
    tree.group("system.slice/ssh.service", cgroup_subtree_control="", memory_max="max")
    if os.getuid() == 0:
        assert tree.places() == []


def test_without_controllers_there_is_no_group(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "0::/")
    tree.group("", cgroup_controllers="", cgroup_subtree_control="")
    assert tree.places() == []
    assert list(cgroup.places(_LIMITS.words(), tmp_path / "no", tmp_path / "nothing")) == []


def test_the_old_hierarchies_are_used_where_nobody_put_us_into_a_group(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "4:memory:/somebody/s", "8:pids:/", "1:cpu:/", "0::/")
    for controller in ("memory", "pids", "cpu", "memory/somebody/s"):
        tree.group(controller)
    assert tree.places() == [
        (tree.mount / "pids", {"pids.max": "960"}),
        (tree.mount / "cpu", {"cpu.cfs_quota_us": "150000"}),
    ]
    tree.own.write_text("4:memory:/\n8:pids:/other\n")
    ((parent, wanted),) = tree.places(Limits(60, 300 << 20))
    assert parent == tree.mount / "memory"
    assert set(wanted.values()) == {str(300 << 20)}


def test_what_the_kernel_ended_is_counted_in_both_kinds(tmp_path: Path) -> None:
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\n")
    assert cgroup.Group((tmp_path,)).ended_for_memory() == 3
    (tmp_path / "memory.events").rename(tmp_path / "memory.oom_control")
    assert cgroup.Group((tmp_path,)).ended_for_memory() == 3
    assert cgroup.Group(()).ended_for_memory() == 0


# ---- in the sandbox


def _groups(pid: int) -> list[Path]:
    """The control groups of this machine that are named for a process."""
    return [folder for parent, _wanted in _real() for folder in parent.glob(f"handwork-{pid}-*")]


def _real() -> list[tuple[Path, dict[str, str]]]:
    return list(cgroup.places(_LIMITS.words(), Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")))


@pytest.fixture
def groups() -> None:
    if not _real():
        pytest.skip("this user may make no control group here")


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize("backend", ["bwrap", "host"])
async def test_programs_run_in_a_group_that_is_gone_with_the_sandbox(opener: Opener, backend: str) -> None:
    sandbox = opener(backend)
    process = await sandbox.spawn(["bash", "-c", "setsid sleep 1000 & echo up; wait"])
    assert await process.read() == b"up\n"
    groups = _groups(os.getpid())
    assert groups
    for folder in groups:
        held = (folder / "cgroup.procs").read_text().split()
        assert len(held) >= 3  # the supervisor, the leader, bash and what it started
        assert str(os.getpid()) not in held
    assert [(folder / "pids.max").read_text().strip() for folder in groups if (folder / "pids.max").exists()] in (
        ["8192"],
        [],
    )
    await sandbox.close()
    assert _groups(os.getpid()) == []


_MURDERER = """
import os, signal, sys, time
leader = os.getppid()
supervisor = int(open(f"/proc/{leader}/stat").read().rpartition(")")[2].split()[1])
if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGSTOP, signal.SIGKILL):
        os.kill(leader, number)
        os.kill(supervisor, number)
time.sleep(1000)
"""


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize("backend", ["host", "landlock"])
async def test_who_killed_its_leader_and_the_supervisor_ends_with_the_group(opener: Opener, backend: str) -> None:
    if backend == "landlock" and not landlock.version():
        pytest.skip("this kernel has no Landlock")
    sandbox, mark = opener(backend), f"handwork-{os.getpid()}-murderer-{backend}"
    with pytest.raises(SandboxError, match="gone"):
        await sandbox.exec(["python3", "-S", "-c", _MURDERER, mark])
    await sandbox.close()
    assert [one for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or ())] == []
    assert _groups(os.getpid()) == []


@pytest.mark.usefixtures("groups")
async def test_a_start_that_fails_leaves_no_group(opener: Opener) -> None:
    sandbox = opener("bwrap")
    use = asyncio.ensure_future(sandbox.exec(["true"]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await sandbox.close()
    await asyncio.wait([use])
    use.exception()
    assert _groups(os.getpid()) == []


_OWNER = """
import asyncio, sys
from pathlib import Path
from handwork.config import SandboxSettings
from handwork.sandbox.open import open_sandbox

async def main(base):
    sandbox = open_sandbox(SandboxSettings(backend="bwrap"), workspace=base / "w", artifacts=base / "a", notify=lambda level, text: None)
    await sandbox.exec(["true"])
    print("up", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.usefixtures("groups")
async def test_what_a_killed_owner_left_is_removed_at_the_next_start(opener: Opener, tmp_path: Path) -> None:
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _OWNER, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert owner.stdout is not None
    assert await asyncio.wait_for(owner.stdout.readline(), 30) == b"up\n"
    left = _groups(owner.pid)
    assert left
    owner.send_signal(signal.SIGKILL)
    await owner.wait()
    async with asyncio.timeout(20):
        # What is waited for is the kernel's: nothing tells of it.
        for _ in iter(lambda: any((folder / "cgroup.procs").read_text() for folder in left), False):
            await asyncio.sleep(0.01)
    sandbox = opener("bwrap")
    await sandbox.exec(["true"])
    assert _groups(owner.pid) == []
    assert _groups(os.getpid())
