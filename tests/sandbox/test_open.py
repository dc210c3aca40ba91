"""Which sandbox the settings give, which workspaces are refused, and what is said where none can run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from handwork.config import SandboxSettings
from handwork.errors import ConfigError, SandboxUnavailable
from handwork.sandbox import bwrap, root
from handwork.sandbox.base import Sandbox
from handwork.sandbox.open import open_sandbox, probe

from .conftest import Opener


def _open(workspace: Path, backend: Literal["auto", "bwrap", "host"] = "auto", hide: tuple[Path, ...] = ()) -> Sandbox:
    settings = SandboxSettings(backend=backend)
    return open_sandbox(settings, workspace=workspace, artifacts=Path("/nowhere"), notify=print, hide=hide)


def _fake(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


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
    monkeypatch.setattr(bwrap, "find_bwrap", lambda: None)
    sandbox = _open(tmp_path / "w")
    with pytest.raises(SandboxUnavailable, match=r"apt-get install bubblewrap.*--sandbox host"):
        await sandbox.exec(["true"])
    with pytest.raises(SandboxUnavailable):
        await probe()
    await sandbox.close()


async def test_a_bwrap_that_may_not_make_namespaces_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = _fake(tmp_path / "bwrap", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    monkeypatch.setattr(bwrap, "find_bwrap", lambda: program)
    with pytest.raises(SandboxUnavailable, match=r"user namespaces.*sysctl.*--sandbox host"):
        await probe()


async def test_a_bwrap_without_the_newest_option_is_used_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = bwrap.find_bwrap()
    script = (
        'for word; do [ "$word" = --disable-userns ] && { echo "bwrap: Unknown option --disable-userns" >&2; exit 1; }; done; '
        f'exec {real} "$@"'
    )
    program = _fake(tmp_path / "bwrap", script)
    monkeypatch.setattr(bwrap, "find_bwrap", lambda: program)
    await probe()


async def test_the_probe_passes_where_bwrap_runs() -> None:
    await probe()


async def test_a_sandbox_that_did_not_start_may_start_later(monkeypatch: pytest.MonkeyPatch, opener: Opener) -> None:
    sandbox = opener("bwrap")
    with monkeypatch.context() as broken:
        broken.setattr(bwrap, "find_bwrap", lambda: None)
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
    real = root.python_folders()
    monkeypatch.setattr(root, "python_folders", lambda: [*real, code])
    sandbox = opener("bwrap", workspace=workspace)
    for attack in ("touch deep/er/code/x", "mv deep/er/code other", "mv deep other", "mv deep/er other", "rm -rf deep"):
        assert (await sandbox.exec(["bash", "-c", attack])).exit_code != 0, attack
    assert await sandbox.stat("deep/er/code")
    assert (await sandbox.exec(["bash", "-c", "touch deep/free deep/er/free free"])).exit_code == 0


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
    links, real = root.follow(tmp_path / "current")
    assert links == {
        str(tmp_path / "current"): str(tmp_path / "versions" / "3.11"),
        str(tmp_path / "versions" / "3.11"): "3.11.7",
    }
    assert real == tmp_path / "versions" / "3.11.7"
