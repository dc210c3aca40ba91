"""What the doctor's tests share: a ground to look at, and nobody's servers on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handwork.cli.doctor.finding import Ground
from handwork.config import load_settings

MakeGround = Callable[..., Ground]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def ground(workspace: Path) -> MakeGround:
    """A ground with this environment over a plain one."""

    def make(*, config: str = "", online: bool = False, **environ: str) -> Ground:
        plain = {name: os.environ[name] for name in ("PATH", "HOME", "HANDWORK_HOME") if name in os.environ}
        file = None
        if config:
            file = workspace.parent / "handwork-test.toml"
            file.write_text(config)
        return Ground(load_settings(file, workspace=workspace, environ=plain | environ), workspace, online)

    return make
