"""What was measured while installing is printed at the end, also when all went well."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter
from tests.install.places import make_tools

MEASURED = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def measured(pytestconfig: pytest.Config) -> list[str]:
    return pytestconfig.stash.setdefault(MEASURED, [])


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tools(tmp_path_factory.mktemp("tools") / "venv")


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(MEASURED, []):
        terminalreporter.write_line(line)
