"""Sandboxes for the tests, closed at their end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handwork.config import SandboxSettings
from handwork.sandbox.client import SupervisedSandbox
from handwork.sandbox.inside import landlock
from handwork.sandbox.open import open_sandbox

WITH_LANDLOCK = {"test_files", "test_programs", "test_trees"}
"""Modules whose tests run in a landlock sandbox as well; its supervisor is that of the others."""
NOT_WITH_LANDLOCK = {
    "test_a_terminal_is_one",
    "test_end_of_file_reaches_a_program_on_a_terminal",
    "test_two_programs_share_temporary_files_and_ports",
}
"""They need a terminal, or a network of the sandbox's own."""


class Opener:
    """Opens sandboxes on folders of the test; `notices` holds what they reported."""

    def __init__(self, base: Path) -> None:
        self.base, self.notices = base, list[tuple[str, str]]()
        self.opened: list[SupervisedSandbox] = []

    def __call__(
        self,
        backend: str,
        *,
        workspace: Path | None = None,
        network: bool = False,
        allow_net: tuple[str, ...] = (),
        **more: Any,
    ) -> SupervisedSandbox:
        place = self.base / f"place{len(self.opened)}"
        sandbox = open_sandbox(
            SandboxSettings(backend=backend, network=network, allow_net=allow_net),
            workspace=workspace or place / "workspace",
            artifacts=place / "artifacts",
            notify=lambda level, text: self.notices.append((level, text)),
            **more,
        )
        assert isinstance(sandbox, SupervisedSandbox)
        self.opened.append(sandbox)
        return sandbox


@pytest.fixture
async def opener(tmp_path: Path) -> AsyncIterator[Opener]:
    opener = Opener(tmp_path)
    yield opener
    for sandbox in opener.opened:
        await sandbox.close()


@pytest.fixture(params=["bwrap", "host", "landlock"])
def sandbox(request: pytest.FixtureRequest, opener: Opener) -> SupervisedSandbox:
    if request.param == "landlock":
        if landlock.version() < 6:
            pytest.skip("this kernel has no Landlock, or an older one")
        module = request.module.__name__.rpartition(".")[2]
        if module not in WITH_LANDLOCK or request.function.__name__ in NOT_WITH_LANDLOCK:
            pytest.skip("not for landlock: see conftest.py")
    return opener(request.param)


@pytest.fixture
def bwrap(opener: Opener) -> SupervisedSandbox:
    return opener("bwrap")


@pytest.fixture
def host(opener: Opener) -> SupervisedSandbox:
    return opener("host")
