"""The public conformance suite against our client and our server: all scenarios pass but those that the baseline explains."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.mcp.real.baseline import CLIENT, SERVER
from tests.mcp.real.suite import Found, run, scenarios
from tests.mcp.real.suite_server import suite_server
from tests.support.node import DRIVERS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


async def test_our_client_does_what_the_suite_asks_for(tmp_path: Path) -> None:
    command = f"{sys.executable} {DRIVERS / 'conformance_client.py'}"
    found = await run("client", await scenarios("Client"), ["--command", command], tmp_path)
    assert len(found) >= 26
    assert _surprises(found, CLIENT) == []


async def test_our_server_does_what_the_suite_asks_for(tmp_path: Path) -> None:
    async with suite_server(tmp_path) as (url, token):
        found = await run("server", await scenarios("Server"), ["--url", url], tmp_path, CONFORMANCE_TOKEN=token)
    assert len(found) >= 32
    assert _surprises(found, SERVER) == []


def test_the_page_on_conformance_explains_what_the_baseline_does() -> None:
    page = (ROOT / "docs" / "mcp-conformance.md").read_text()
    assert [name for name in {**CLIENT, **SERVER} if f"`{name}`" not in page] == []


def _surprises(found: Mapping[str, Found], explained: Mapping[str, str]) -> list[str]:
    """Scenarios that failed and are not explained, and explained ones that pass or are not there any more."""
    failed = [
        f"{name} failed: {one.failed}\n{one.said[-2000:]}"
        for name, one in found.items()
        if not one.well and name not in explained
    ]
    stale = [
        f"{name} passes: take it out of the baseline" for name, one in found.items() if one.well and name in explained
    ]
    gone = [f"{name} is no scenario any more" for name in explained if name not in found]
    return [*failed, *stale, *gone]
