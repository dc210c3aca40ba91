"""The landlock sandbox: what it holds, what it says that it does not hold, and that both are true."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from handwork.errors import SandboxLacks, SandboxUnavailable, ToolError
from handwork.sandbox.inside import landlock
from handwork.sandbox.landlock import LandlockSandbox, weaker
from handwork.tool.kernel import Kernel
from handwork.tool.shell import Shell

from .attacks import ATTACKS, SECRET, Target
from .test_guard import Ground

needs_landlock = pytest.mark.skipif(landlock.version() < 6, reason="this kernel has no Landlock, or an older one")

GET_THROUGH = {
    "change a mode outside",
    "processes of others",
    "a unix socket of the host",
    "the host's name",
    "list the keys",
    "Handwork's own store in the workspace",  # such a workspace is refused
    "move a hidden folder away",
}
"""Attacks that bwrap withstands and landlock does not."""
BY_MODES_ALONE = {"write to the system", "write to the interpreter", "anything of the kernel's"}
"""These ask for the modes of files, which Landlock does not change; that nothing can be written is tested for itself."""


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    monkeypatch.setenv("SECRET_KEY", SECRET)
    target = Target(tmp_path)
    yield target
    target.close()


@pytest.fixture
async def confined(target: Target) -> AsyncIterator[LandlockSandbox]:
    sandbox = LandlockSandbox(
        target.workspace, target.artifacts, lambda level, text: None, hide=[target.outside / "store"]
    )
    yield sandbox
    await sandbox.close()


@pytest.fixture
async def ground(tmp_path: Path) -> AsyncIterator[Ground]:
    ground = Ground(tmp_path)
    ground.backend = "landlock"
    yield ground
    await ground.close()


@needs_landlock
async def test_what_gets_through_is_what_is_said_and_no_more(target: Target, confined: LandlockSandbox) -> None:
    through = {attack for attack in ATTACKS if await target.gets_through(confined, attack)}
    assert through - BY_MODES_ALONE <= GET_THROUGH
    assert not confined.contained


@needs_landlock
async def test_nothing_outside_can_be_opened_for_writing(target: Target, confined: LandlockSandbox) -> None:
    places = [
        "/etc/passwd", "/usr/bin/env", sys.executable, "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/oom_score_adj",
        str(target.outside / "secret"), str(target.artifacts), "/dev/shm/handwork-new", "/tmp/handwork-new", "/dev/tty", "/dev/ptmx",
        "/proc/self/root/etc/passwd", "/var/tmp/handwork-new",
    ]  # fmt: skip
    script = (
        "import os, sys\nfor path in sys.argv[1:]:\n"
        "  try: os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT); print(path)\n  except OSError: pass"
    )
    result = await confined.exec(["python3", "-c", script, *places])
    assert result.output == b""
    truncated = f"import os; os.truncate({str(target.outside / 'secret')!r}, 0)"
    assert (await confined.exec(["python3", "-c", truncated])).exit_code != 0
    assert (target.outside / "secret").read_text() == SECRET


@needs_landlock
async def test_ordinary_work_goes_on_in_the_workspace_and_in_a_home_of_its_own(confined: LandlockSandbox) -> None:
    script = (
        "set -e; mkdir -p a b; echo x > a/f; mv a/f b/f; ln b/f b/g; ln -s f b/h; cat b/h; mkfifo p; rm -r a b p; "
        "echo y > ~/z; cat ~/z $TMPDIR/../home/z; cat <(echo pipe); python3 -c 'import ssl, sqlite3; print(6 * 7)'; echo > /dev/null"
    )
    result = await confined.exec(["bash", "-c", script])
    assert (result.exit_code, result.output, result.stderr) == (0, b"x\ny\ny\npipe\n42\n", b"")
    with pytest.raises(SandboxLacks, match="no terminals"):
        await confined.spawn(["cat"], pty=True)


@needs_landlock
async def test_that_there_are_no_terminals_is_an_answer_and_no_breakdown(confined: LandlockSandbox) -> None:
    shell = Shell(confined)
    try:
        with pytest.raises(
            ToolError, match="^Nothing was run. The landlock sandbox has no terminals – run the command without"
        ):
            await shell.open_terminal("cat")
    finally:
        await shell.close()


@needs_landlock
async def test_no_capability_is_left_to_root_either(confined: LandlockSandbox) -> None:
    result = await confined.exec(["grep", "^Cap", "/proc/self/status"])
    assert {int(line.split()[1], 16) for line in result.output.splitlines()} == {0}


@needs_landlock
@pytest.mark.parametrize("family", [2, 10, 17, 38, 40])
async def test_no_socket_of_a_network_can_be_made(confined: LandlockSandbox, family: int) -> None:
    script = f"import socket\ntry: socket.socket({family}, 3 if {family} == 17 else 1)\nexcept OSError as error: print(error.errno)"
    assert (await confined.exec(["python3", "-c", script])).output in (b"97\n", b"1\n")


@needs_landlock
async def test_the_python_kernel_runs(confined: LandlockSandbox) -> None:
    kernel = Kernel(confined)
    try:
        assert (await kernel.run("6 * 7", 60, _nobody)).text.strip() == "42"
    finally:
        await kernel.close()


async def _nobody(text: str) -> None:
    pass


@needs_landlock
async def test_with_the_network_a_port_of_the_host_can_be_reached(target: Target) -> None:
    sandbox = LandlockSandbox(target.workspace, target.artifacts, lambda level, text: None, network=True)
    try:
        assert await target.gets_through(sandbox, "TCP to the host")
        assert not await target.gets_through(sandbox, "end a process of others")
    finally:
        await sandbox.close()


CHANGES = {
    "written to": "echo evil >> .git/config",
    "replaced": "echo evil > new; mv new .git/config",
    "removed": "rm .git/config",
    "replaced by a link": "ln -sf ../evil .git/config",
    "replaced by a folder": "rm .git/config; mkdir .git/config",
    "made executable": "chmod 777 .git/config",
    "written to where the folder was moved away and back": "mv .git x; echo evil >> x/config; mv x .git",
    "in a new folder of the same name": "mv .git x; mkdir .git; echo evil > .git/config",
}


@needs_landlock
@pytest.mark.parametrize("change", CHANGES)
async def test_a_protected_file_is_put_back_after_the_call(ground: Ground, change: str) -> None:
    config = ground.space / ".git" / "config"
    before, mode = config.read_text(), config.stat().st_mode
    assert await ground.run(CHANGES[change]) == 0
    assert ".git/config may not be changed" in await ground.told()
    assert (config.read_text(), config.stat().st_mode) == (before, mode)
    assert not config.is_symlink()
    assert await ground.told() == ""


@needs_landlock
async def test_in_a_protected_folder_what_is_new_goes_and_what_was_there_comes_back(ground: Ground) -> None:
    hooks = ground.space / ".git" / "hooks"
    (hooks / "pre-push").write_text("good")
    (hooks / "pre-push").chmod(0o755)
    for attack in (
        "echo evil > .git/hooks/pre-commit", "rm -r .git/hooks", "rm .git/hooks/*; ln -s /tmp .git/hooks/x",
        "mv .git/hooks h; ln -s ../h .git/hooks", "echo evil > .git/hooks/pre-push",
    ):  # fmt: skip
        assert await ground.run(attack) == 0
        assert "again what it was" in await ground.told(), attack
        assert {path.name: path.read_text() for path in hooks.iterdir()} == {"pre-push": "good"}
        assert os.access(hooks / "pre-push", os.X_OK)
        assert not hooks.is_symlink()


@needs_landlock
async def test_a_git_folder_that_became_a_link_is_put_away(ground: Ground) -> None:
    assert await ground.run("mv .git x; ln -s x .git; echo evil >> x/config") == 0
    assert ".git may not appear" in await ground.told()
    assert not (ground.space / ".git").is_symlink()


@needs_landlock
async def test_what_is_too_large_to_be_put_back_is_said_at_the_start(ground: Ground) -> None:
    (ground.space / ".vscode").mkdir()
    (ground.space / ".vscode" / "large").write_bytes(bytes(2 << 20))
    await ground.run("true")
    assert any("Too large to be put back" in notice and ".vscode/large" in notice for notice in ground.notices)


@needs_landlock
async def test_what_it_does_not_hold_is_said_once(ground: Ground) -> None:
    await ground.run("true")
    await ground.run("true")
    (notice,) = ground.notices
    assert notice.startswith("WEAKER SANDBOX (landlock)")


def test_what_an_older_kernel_lacks_is_named() -> None:
    assert "sent signals" not in weaker(6, network=False)
    assert "sent signals" in weaker(5, network=False)
    assert "can be emptied" in weaker(2, network=False)
    assert "there is no network" not in weaker(6, network=True)


@needs_landlock
async def test_a_workspace_that_holds_our_own_store_is_refused(ground: Ground) -> None:
    own = ground.space / "own"
    sandbox = LandlockSandbox(ground.space, ground.artifacts, print, hide=[own])
    with pytest.raises(SandboxUnavailable, match="cannot hide"):
        await sandbox.exec(["true"])
    await sandbox.close()


def test_a_kernel_that_refuses_is_no_reason_to_go_on() -> None:
    """Landlock's calls are refused in a child by a filter, as a kernel without it does."""
    code = (
        "import ctypes, struct, sys; sys.path.append(sys.argv[1]); from inside import landlock\n"
        "lines = [(0x20, 0, 0, 0), (0x35, 0, 1, int(sys.argv[2])), (0x06, 0, 0, 0x50026), (0x06, 0, 0, 0x7FFF0000)]\n"
        "code = b''.join(struct.pack('=HBBI', *line) for line in lines)\n"
        "kept = ctypes.create_string_buffer(code, len(code)); libc = ctypes.CDLL(None)\n"
        "libc.prctl(38, 1, 0, 0, 0); libc.prctl(22, 2, struct.pack('@HP', 4, ctypes.addressof(kept)), 0, 0)\n"
        "print(landlock.version()); landlock.confine([], [], [], [], False); print('went on')\n"
    )
    inside = Path(landlock.__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-I", "-c", code, str(inside), "444"], capture_output=True, text=True, check=False, timeout=30
    )
    assert run.stdout == "0\n"
    assert "this kernel has no Landlock" in run.stderr


def _verdict(code: bytes, number: int, architecture: int, argument: int, third: int = 0) -> int:
    """What the kernel's machine makes of a call; every jump must land in the program."""
    lines = list(struct.iter_unpack("=HBBI", code))
    data = struct.pack("=IIQQQQ", number, architecture, 0, argument, 0, third)
    register = at = 0
    while True:
        operation, then, otherwise, value = lines[at]
        at += 1
        if operation == 0x20:
            register = int.from_bytes(data[value : value + 4], "little")
        elif operation == 0x06:
            return int(value)
        else:
            at += then if register == value else otherwise


@pytest.mark.parametrize("index", range(4))
def test_the_filter_lets_unix_sockets_and_the_question_for_interfaces_pass_alone_on_every_architecture(
    index: int,
) -> None:
    calls, code = landlock.calls, landlock.program()
    architecture = calls.ARCHITECTURES[index]
    for table in (calls.SOCKET, calls.SOCKETPAIR):
        number = table[index]
        assert number is not None
        for family in (0, 2, 10, 17, 38):
            for high in (0, 1 << 32):
                assert _verdict(code, number, architecture, high | family) == 0x50061
        assert _verdict(code, number, architecture, 1) == 0x7FFF0000
        assert _verdict(code, number, architecture, 16, 0) == 0x7FFF0000
        assert {_verdict(code, number, architecture, 16, protocol) for protocol in range(1, 30)} == {0x50061}
    for number in set(range(600)) - {calls.SOCKET[index], calls.SOCKETPAIR[index], calls.SOCKETCALL[index]}:
        assert _verdict(code, number, architecture, 2) == 0x7FFF0000
    if (whole := calls.SOCKETCALL[index]) is not None:
        assert _verdict(code, whole, architecture, 1) == 0x50061
    assert _verdict(code, 1, 0x12345678, 1) == 0x50001
