"""What the server's tests share: a workspace, and houses that serve it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from handwork.config import load_settings
from handwork.server.house import House, chosen

MakeHouse = Callable[..., House]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def said() -> list[str]:
    """What the server said to whoever looks after it."""
    return []


@pytest.fixture
def make_house(home: Path, workspace: Path, said: list[str]) -> MakeHouse:
    """house(tools=[…], policy={…}, llm={…}): settings as overrides of tables."""

    def make(tools: list[str] | None = None, **tables: Mapping[str, Any]) -> House:
        settings = load_settings(workspace=workspace, overrides=tables, trusted=False)
        return House(settings, workspace, chosen(tools), said.append)

    return make
