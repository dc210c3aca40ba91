"""Sandboxes in stand-ins of engines and remote machines, and in a real engine where one is named."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from handwork.config import DaytonaSettings, SandboxSettings
from handwork.sandbox.closed import Rules
from handwork.sandbox.limits import Limits
from handwork.sandbox.remote.daytona import DaytonaSandbox
from handwork.sandbox.remote.docker import DockerSandbox
from handwork.sandbox.remote.sandbox import RelayedSandbox
from tests.support import real_engine
from tests.support.daytona_server import KEY, DaytonaServer
from tests.support.engine_server import IMAGE, EngineServer

LIMITS = Limits(processes=512, memory=1 << 30)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineServer]:
    """A stand-in engine, as long as the test runs."""
    with EngineServer(tmp_path / "engine.sock").running() as engine:
        yield engine


class Opener:
    """Opens sandboxes on folders of the test; `notices` holds what they reported."""

    def __init__(self, base: Path, engine: EngineServer, daytona: DaytonaServer) -> None:
        self.base, self.engine, self.server, self.notices = base, engine, daytona, list[tuple[str, str]]()
        self.opened: list[RelayedSandbox] = []

    def docker(
        self,
        *,
        hide: tuple[Path, ...] = (),
        environ: Mapping[str, str] | None = None,
        rules: Rules | None = None,
        **settings: Any,
    ) -> RelayedSandbox:
        place = self.base / f"place{len(self.opened)}"
        # The workspace has the same name inside, so that the tests of every backend hold here as they are.
        words = {"image": IMAGE, "work_dir": str(place / "workspace"), **settings}
        sandbox = DockerSandbox(
            SandboxSettings(backend="docker", **words),
            place / "workspace",
            place / "artifacts",
            lambda level, text: self.notices.append((level, text)),
            limits=LIMITS,
            environ=self.engine.environ if environ is None else environ,
            hide=hide,
            rules=rules,
        )
        self.opened.append(sandbox)
        return sandbox

    def daytona(
        self,
        *,
        hide: tuple[Path, ...] = (),
        carry: bool = False,
        key: str = KEY,
        rules: Rules | None = None,
        table: Mapping[str, Any] = MappingProxyType({}),
        **settings: Any,
    ) -> RelayedSandbox:
        place = self.base / f"place{len(self.opened)}"
        if not carry:  # the same folder there as here, so that the tests of every backend hold as they are
            self.server.shared.append(place / "workspace")
        words = {"work_dir": str(place / "workspace"), **settings}
        sandbox = DaytonaSandbox(
            SandboxSettings(backend="daytona", **words),
            DaytonaSettings(daytona_api_key=key, daytona_server_url=f"{self.server.url}/api", **table),
            place / "workspace",
            place / "artifacts",
            lambda level, text: self.notices.append((level, text)),
            limits=LIMITS,
            environ={},
            hide=hide,
            carry=carry,
            rules=rules,
        )
        self.opened.append(sandbox)
        return sandbox


@pytest.fixture
async def daytona() -> AsyncIterator[DaytonaServer]:
    """A stand-in for Daytona, as long as the test runs."""
    async with DaytonaServer().running() as daytona:
        yield daytona


@pytest.fixture
async def opener(tmp_path: Path, engine: EngineServer, daytona: DaytonaServer) -> AsyncIterator[Opener]:
    opener = Opener(tmp_path, engine, daytona)
    yield opener
    for sandbox in opener.opened:
        await sandbox.close()


@pytest.fixture
def docker(opener: Opener) -> RelayedSandbox:
    return opener.docker()


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    """An image in the real engine; skips where none runs."""
    if why := real_engine.why_none():
        pytest.skip(why)
    with real_engine.with_image() as name:
        yield name


@pytest.fixture(params=["docker", "daytona", pytest.param("engine", marks=pytest.mark.slow)])
def sandbox(request: pytest.FixtureRequest, opener: Opener) -> RelayedSandbox:
    if request.param == "engine":
        if why := real_engine.why_none():
            pytest.skip(why)
        return opener.docker(image=request.getfixturevalue("image"), environ=os.environ)
    open_it: Callable[[], RelayedSandbox] = getattr(opener, request.param)
    return open_it()
