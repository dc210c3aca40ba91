"""A real Docker engine, where one runs: what the stand-in cannot show, because the engine and its kernel do it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from handwork.errors import SandboxUnavailable
from handwork.sandbox.remote.sandbox import RelayedSandbox
from tests.support import real_engine

from .conftest import Opener

pytestmark = pytest.mark.slow


@pytest.fixture
def real(opener: Opener, image: str) -> RelayedSandbox:
    return opener.docker(image=image, environ=os.environ, work_dir="/workspace", memory_limit="256m")


@pytest.fixture(autouse=True)
def an_engine() -> None:
    if why := real_engine.why_none():
        pytest.skip(why)


async def test_programs_have_no_capability_no_network_and_a_read_only_root(
    real: RelayedSandbox, opener: Opener
) -> None:
    script = (
        "grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status; ls /sys/class/net; touch /etc/x /usr/x /x; mount -t tmpfs x /mnt; "
        "id -u; touch mine; cat /proc/1/environ"
    )
    result = await real.exec(["bash", "-c", script])
    words = result.output.decode().split()
    assert sorted(words) == sorted(
        ["CapEff:", "CapBnd:", "0" * 16, "0" * 16, "NoNewPrivs:", "1", "lo", str(os.getuid())]
    )
    assert result.stderr.count(b"Read-only file system") == 3
    assert (opener.base / "place0" / "workspace" / "mine").stat().st_uid == os.getuid()


async def test_a_fork_bomb_and_a_memory_hog_end_and_the_sandbox_lives(real: RelayedSandbox) -> None:
    bomb = await real.exec(["bash", "-c", "f() { f | f & }; f; sleep 100"], timeout=5)
    assert bomb.timed_out or bomb.exit_code != 0
    hog = await real.exec(["python3", "-c", "x = bytearray(2 << 30); print(len(x))"], timeout=30)
    assert hog.exit_code != 0
    assert (await real.exec(["echo", "alive"])).output == b"alive\n"


async def test_no_container_is_left_by_a_close(real: RelayedSandbox, opener: Opener) -> None:
    await real.spawn(["sleep", "1000"])
    assert len(real_engine.containers(opener.base)) == 1
    await real.close()
    assert real_engine.containers(opener.base) == []


async def test_an_image_without_python_says_so(opener: Opener) -> None:
    with real_engine.with_image(python=False) as bare:
        sandbox = opener.docker(image=bare, environ=os.environ)
        with pytest.raises(SandboxUnavailable, match=r"python3.*not found.*the image needs python3"):
            await sandbox.exec(["true"])


async def test_a_container_ends_with_our_process(tmp_path: Path, image: str) -> None:
    script = textwrap.dedent(
        f"""
        import asyncio
        from pathlib import Path
        from handwork.config import SandboxSettings
        from handwork.sandbox.open import open_sandbox

        async def main():
            sandbox = open_sandbox(
                SandboxSettings(backend="docker", image={image!r}), workspace=Path({str(tmp_path / "w")!r}),
                artifacts=Path({str(tmp_path / "a")!r}), notify=print,
            )
            await sandbox.spawn(["bash", "-c", "trap '' TERM HUP; setsid sleep 1000 & sleep 1000"])
            print("up", flush=True)
            await asyncio.sleep(1000)

        asyncio.run(main())
        """
    )
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert await child.stdout.readline() == b"up\n"
    assert len(real_engine.containers(tmp_path)) == 1
    child.send_signal(signal.SIGKILL)
    await child.wait()
    async with asyncio.timeout(30):
        # The engine removes it when it has ended: nothing tells us of it.
        for _ in iter(lambda: real_engine.containers(tmp_path), []):
            await asyncio.sleep(0.1)
