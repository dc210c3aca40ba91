"""A real sandbox for the tools that work in one, and a context as the session would give it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from handwork.config import SandboxSettings
from handwork.sandbox.base import Sandbox
from handwork.sandbox.open import open_sandbox
from handwork.schema import Artifact, Message
from handwork.tool.base import ToolContext

BACKENDS = ["host", "bwrap"]
"""A machine without bwrap fails the tests: half of them passing would look like all of them."""


@dataclass
class Place:
    """A session as far as a tool can see it: a sandbox, its workspace on the host, resources, and what was shown."""

    sandbox: Sandbox
    workspace: Path
    artifacts: Path
    resources: dict[str, Any] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    seen: asyncio.Event = field(default_factory=asyncio.Event)

    def context(self, *, history: Sequence[Message] = (), deadline: float | None = None) -> ToolContext:
        return ToolContext(
            call_id="call_1",
            sandbox=self.sandbox,
            ask=self._ask,
            progress=self._progress,
            save_artifact=self._save,
            resource=self._resource,
            history=history,
            deadline=deadline,
        )

    async def _ask(self, question: str) -> str:
        raise AssertionError(question)

    async def _progress(self, text: str) -> None:
        self.shown.append(text)
        self.seen.set()

    async def _save(
        self, name: str, data: bytes, *, title: str = "", media_type: str = "application/octet-stream"
    ) -> Artifact:
        path = self.artifacts / name
        path.write_bytes(data)
        return Artifact(path=str(path), title=title, media_type=media_type)

    def _resource(self, key: str, make: Callable[[], Any], /) -> Any:
        if key not in self.resources:
            self.resources[key] = make()
        return self.resources[key]

    async def close(self) -> None:
        for resource in self.resources.values():
            if hasattr(resource, "close"):
                await resource.close()
        await self.sandbox.close()


def _folders(base: str) -> tuple[Path, Path]:
    workspace, artifacts = Path(base, "workspace"), Path(base, "artifacts")
    workspace.mkdir()
    artifacts.mkdir()
    return workspace, artifacts


@asynccontextmanager
async def open_place(backend: str) -> AsyncIterator[Place]:
    # Not below pytest's own folder: a root that runs the tests may live in a home that the sandbox does not show.
    with tempfile.TemporaryDirectory(prefix="hw-test-") as folder:
        workspace, artifacts = _folders(folder)
        sandbox = open_sandbox(
            SandboxSettings(backend=backend), workspace=workspace, artifacts=artifacts, notify=lambda level, text: None
        )
        place = Place(sandbox, workspace, artifacts)
        try:
            yield place
        finally:
            async with asyncio.timeout(20):
                await place.close()


def kill_all_children() -> None:
    """What a sandbox looks like whose processes were killed from outside."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            child.kill()


@pytest.fixture(params=BACKENDS)
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """On every backend."""
    async with open_place(request.param) as made:
        yield made


@pytest.fixture
async def host() -> AsyncIterator[Place]:
    """On the host, for what does not depend on the backend."""
    async with open_place("host") as made:
        yield made
