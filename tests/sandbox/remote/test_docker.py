"""The docker backend against a stand-in engine: what it asks of it, what it says when it is refused, and that nothing is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from handwork.errors import SandboxError, SandboxUnavailable
from handwork.sandbox.remote.sandbox import RelayedSandbox
from tests.support.engine_server import IMAGE, EngineServer

from .conftest import Opener


async def test_a_container_is_asked_for_with_nothing_that_it_does_not_need(
    engine: EngineServer, opener: Opener
) -> None:
    sandbox = opener.docker(work_dir="/workspace/", memory_limit="256m", cpu_limit=0.5)
    await sandbox.exec(["true"])
    (container,) = engine.made
    config, host = container.config, container.config["HostConfig"]
    assert config["User"] == f"{os.getuid()}:{os.getgid()}"
    assert (host["NetworkMode"], host["CapDrop"], host["SecurityOpt"]) == ("none", ["ALL"], ["no-new-privileges:true"])
    assert host["ReadonlyRootfs"]
    assert host["AutoRemove"]
    assert host["LogConfig"] == {"Type": "none"}
    assert "Privileged" not in host
    assert [(mount["Source"], mount["Target"], mount["ReadOnly"]) for mount in host["Mounts"]] == [
        (str(opener.base / "place0" / "workspace"), "/workspace", False),
        (str(opener.base / "place0" / "artifacts"), sandbox.artifacts, True),
    ]
    assert config["Labels"]["handwork.session"] == "artifacts"
    assert config["Labels"]["handwork.created"]
    assert not any("docker.sock" in str(mount) for mount in host["Mounts"])


async def test_the_workspace_is_the_users_folder_under_its_name_inside(opener: Opener) -> None:
    sandbox = opener.docker(work_dir="/workspace")
    await sandbox.write("below/new", b"text")
    assert (opener.base / "place0" / "workspace" / "below" / "new").read_bytes() == b"text"
    assert (await sandbox.exec(["pwd"])).output == b"/workspace\n"
    assert await sandbox.resolve("below") == "/workspace/below"
    assert await sandbox.read("/workspace/below/new") == b"text"


async def test_artifacts_can_be_read_and_not_written(opener: Opener) -> None:
    sandbox = opener.docker()
    await sandbox.exec(["true"])
    (opener.base / "place0" / "artifacts" / "chart.svg").write_text("chart")
    path = f"{sandbox.artifacts}/chart.svg"
    assert await sandbox.read(path) == b"chart"
    with pytest.raises(PermissionError):
        await sandbox.write(path, b"x")
    assert (await sandbox.exec(["rm", "-f", path])).exit_code != 0


async def test_handworks_own_files_in_the_workspace_are_not_seen(opener: Opener) -> None:
    workspace = opener.base / "place0" / "workspace"
    (workspace / "deep" / "store").mkdir(parents=True)
    (workspace / "deep" / "store" / "journal").write_text("secret")
    (workspace / "handwork.toml").write_text("api_key = 'secret'")
    sandbox = opener.docker(hide=(workspace / "deep" / "store", workspace / "handwork.toml", opener.base / "elsewhere"))
    result = await sandbox.exec(["sh", "-c", "cat deep/store/journal handwork.toml; ls deep/store; mv deep other"])
    assert b"secret" not in result.output
    assert (workspace / "deep" / "store" / "journal").read_text() == "secret"
    assert not (opener.base / "elsewhere").exists()


async def test_a_large_file_comes_in_pieces_and_whole(docker: RelayedSandbox, opener: Opener) -> None:
    data = os.urandom(1 << 20) * 70
    (opener.base / "place0" / "workspace").mkdir(parents=True, exist_ok=True)
    (opener.base / "place0" / "workspace" / "large").write_bytes(data)
    assert await docker.read("large") == data
    assert await docker.read("large", offset=len(data) - 5) == data[-5:]
    assert await docker.read("large", offset=3, limit=5_000_000) == data[3:5_000_003]


async def test_no_container_is_left_by_a_close_and_a_new_one_is_made_after_a_loss(
    engine: EngineServer, docker: RelayedSandbox
) -> None:
    process = await docker.spawn(["sleep", "1000"])
    (container,) = engine.containers.values()
    engine.remove(container)
    with pytest.raises(SandboxError, match="gone"):
        await process.read()
    assert (await docker.exec(["echo", "again"])).output == b"again\n"
    assert docker.generation == 1
    await docker.close()
    assert engine.containers == {}
    assert len(engine.made) == 2


async def test_what_kills_all_that_it_can_reach_ends_the_sandbox_and_the_next_use_starts_anew(
    docker: RelayedSandbox,
) -> None:
    with pytest.raises(SandboxError, match="gone"):
        await docker.exec(["bash", "-c", "kill -9 -1; sleep 100"])
    assert (await docker.exec(["echo", "again"])).output == b"again\n"


def _killed_later(script: str, environ: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ, **environ})


async def test_a_container_ends_when_our_process_is_killed(engine: EngineServer, tmp_path: Path) -> None:
    script = textwrap.dedent(
        f"""
        import asyncio, sys
        from pathlib import Path
        from handwork.config import SandboxSettings
        from handwork.sandbox.open import open_sandbox

        async def main():
            sandbox = open_sandbox(
                SandboxSettings(backend="docker", image={IMAGE!r}), workspace=Path({str(tmp_path / "w")!r}),
                artifacts=Path({str(tmp_path / "a")!r}), notify=print,
            )
            await sandbox.spawn(["bash", "-c", "trap '' TERM HUP; setsid sleep 1000 & sleep 1000"])
            print("up", flush=True)
            await asyncio.sleep(1000)

        asyncio.run(main())
        """
    )
    child = _killed_later(script, engine.environ)
    assert child.stdout is not None
    assert await asyncio.to_thread(child.stdout.readline) == b"up\n"
    (container,) = engine.containers.values()
    assert container.process is not None
    below = psutil.Process(container.process.pid).children(recursive=True)
    assert len(below) >= 4
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert await asyncio.to_thread(container.gone.wait, 20)
    assert engine.containers == {}
    assert [process for process in below if process.is_running() and process.status() != "zombie"] == []


async def test_closing_during_the_start_leaves_no_container(engine: EngineServer, opener: Opener) -> None:
    for turns in range(0, 400, 25):
        sandbox = opener.docker()
        start = asyncio.ensure_future(sandbox.exec(["true"]))
        for _ in range(turns):
            await asyncio.sleep(0.0005)  # a moment of the start each, whatever it is
        await sandbox.close()
        await asyncio.wait([start])
        assert start.exception() is None or isinstance(start.exception(), SandboxError)
        assert engine.containers == {}, turns


async def test_an_image_is_pulled_once_and_that_is_told(engine: EngineServer, opener: Opener) -> None:
    engine.pulls["other/image:1"] = [
        {"status": "Downloading", "id": "a", "progressDetail": {"current": 5, "total": 10}},
        {"status": "Pull complete", "id": "a"},
    ]
    for _ in range(2):
        await opener.docker(image="other/image:1").exec(["true"])
    assert [text for level, text in opener.notices if "pulling" in text] == [
        "The image other/image:1 is not here yet; pulling it (once)"
    ]


@pytest.mark.parametrize("lines", [None, [{"error": "manifest unknown"}]])
async def test_an_image_that_cannot_be_had_is_named_with_the_way_on(
    engine: EngineServer, opener: Opener, lines: list[dict[str, object]] | None
) -> None:
    if lines is not None:
        engine.pulls["no/such:image"] = lines
    with pytest.raises(
        SandboxUnavailable, match=r"no image no/such:image .*(manifest unknown|denied).*\[sandbox\] image"
    ):
        await opener.docker(image="no/such:image").exec(["true"])


async def test_a_container_that_does_not_start_is_removed_and_says_why(engine: EngineServer, opener: Opener) -> None:
    engine.refuse_start = 'exec: "python3": executable file not found in $PATH'
    with pytest.raises(SandboxUnavailable, match=r'python3": executable file not found .*needs python3'):
        await opener.docker().exec(["true"])
    assert len(engine.made) == 1
    assert engine.containers == {}


async def test_no_engine_is_said_with_what_to_do(opener: Opener, tmp_path: Path) -> None:
    opener.engine.path = tmp_path / "nobody.sock"
    with pytest.raises(
        SandboxUnavailable, match=r"No Docker engine answers at unix://.*nobody.sock: No such file.*DOCKER_HOST"
    ):
        await opener.docker().exec(["true"])


async def test_an_engine_of_another_system_or_machine_is_refused(engine: EngineServer, opener: Opener) -> None:
    engine.about["OSType"] = "windows"
    with pytest.raises(SandboxUnavailable, match="runs windows containers"):
        await opener.docker().exec(["true"])


async def test_in_a_rootless_engine_root_is_the_user(engine: EngineServer, opener: Opener) -> None:
    engine.about["SecurityOptions"] = ["name=seccomp,profile=default", "name=rootless"]
    await opener.docker().exec(["true"])
    assert engine.made[0].config["User"] == "0:0"


async def test_200_calls_leave_descriptors_and_children_as_they_were(docker: RelayedSandbox) -> None:
    async def some() -> None:
        await docker.exec(["cat"], stdin=b"x")
        terminal = await docker.spawn(["cat"], pty=True)
        await terminal.kill()

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    await some()
    before = descriptors()
    for _ in range(100):
        await some()
    assert descriptors() <= before + 4  # a terminal's end comes a moment after its program's


async def test_a_file_that_is_larger_than_our_memory_should_hold_is_not_read_whole(
    docker: RelayedSandbox, opener: Opener
) -> None:
    workspace = opener.base / "place0" / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    with (workspace / "sparse").open("wb") as file:
        file.truncate(900 << 30)
    with pytest.raises(OSError, match="too large to be read whole"):
        await docker.read("sparse")
    assert await docker.read("sparse", offset=800 << 30, limit=4) == bytes(4)
