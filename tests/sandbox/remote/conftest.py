"""Sandboxes in stand-ins of engines and remote machines, and in a real engine where one is named."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handwork.config import SandboxSettings
from handwork.sandbox.limits import Limits
from handwork.sandbox.remote.docker import DockerSandbox
from handwork.sandbox.remote.sandbox import RelayedSandbox
from tests.support.engine_server import IMAGE, EngineServer

LIMITS = Limits(processes=512, memory=1 << 30)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineServer]:
    """A stand-in engine, as long as the test runs."""
    with EngineServer(tmp_path / "engine.sock").running() as engine:
        yield engine


class Opener:
    """Opens sandboxes on folders of the test; `notices` holds what they reported."""

    def __init__(self, base: Path, engine: EngineServer) -> None:
        self.base, self.engine, self.notices = base, engine, list[tuple[str, str]]()
        self.opened: list[RelayedSandbox] = []

    def docker(self, *, hide: tuple[Path, ...] = (), **settings: Any) -> RelayedSandbox:
        place = self.base / f"place{len(self.opened)}"
        # The workspace has the same name inside, so that the tests of every backend hold here as they are.
        words = {"image": IMAGE, "work_dir": str(place / "workspace"), **settings}
        sandbox = DockerSandbox(
            SandboxSettings(backend="docker", **words),
            place / "workspace",
            place / "artifacts",
            lambda level, text: self.notices.append((level, text)),
            limits=LIMITS,
            environ=self.engine.environ,
            hide=hide,
        )
        self.opened.append(sandbox)
        return sandbox


@pytest.fixture
async def opener(tmp_path: Path, engine: EngineServer) -> AsyncIterator[Opener]:
    opener = Opener(tmp_path, engine)
    yield opener
    for sandbox in opener.opened:
        await sandbox.close()


@pytest.fixture
def docker(opener: Opener) -> RelayedSandbox:
    return opener.docker()


@pytest.fixture(params=["docker"])
def sandbox(request: pytest.FixtureRequest, opener: Opener) -> RelayedSandbox:
    open_it: Callable[[], RelayedSandbox] = getattr(opener, request.param)
    return open_it()
