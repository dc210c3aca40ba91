"""What holds for every test: a home of its own, no key of the user's, no network but loopback, no process left behind."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from handwork.config.providers import LOCAL_SERVERS, PROVIDERS

NOBODY = "http://127.0.0.1:9/v1"
"""An address of this machine at which nothing answers."""
REGISTRY_MARK = "slow"
"""Only tests with this mark may leave the machine (they fetch a model from the package registry)."""
_SCREEN = {"NO_COLOR", "FORCE_COLOR", "PYTHONUNBUFFERED", "CLICOLOR_FORCE", "COLORTERM"}


class _Network:
    """Refuses connections of this process that leave the machine, wherever in the stack they are made."""

    def __init__(self) -> None:
        self.closed = False
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if self.closed and event == "socket.connect" and not _is_local(args[1]):
            raise PermissionError(f"a test tried to reach {args[1]!r}: only loopback is open")


def _is_local(address: object) -> bool:
    if not isinstance(address, tuple):
        return True  # a unix socket's path
    host = str(address[0]).split("%")[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_network = _Network()


@pytest.fixture(autouse=True)
def only_loopback(request: pytest.FixtureRequest) -> Iterator[None]:
    _network.closed = request.node.get_closest_marker(REGISTRY_MARK) is None
    yield
    _network.closed = False


@pytest.fixture(autouse=True)
def home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The test's own $HANDWORK_HOME; nothing that the user has set for Handwork or a provider is seen."""
    slow = request.node.get_closest_marker(REGISTRY_MARK) is not None
    for name in list(os.environ):
        ours = name.startswith("HANDWORK_") or name.endswith(("_API_KEY", "_BASE_URL")) or name in _SCREEN
        if ours or (name.lower().endswith("_proxy") and not slow):
            monkeypatch.delenv(name)
    for server in LOCAL_SERVERS:  # none of those that may run on this machine is found
        monkeypatch.setenv(PROVIDERS[server].base_url_variable, NOBODY)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HANDWORK_HOME", str(folder))
    return folder


@pytest.fixture(autouse=True, scope="session")
def no_process_left() -> Iterator[None]:
    """At the end of all tests of this worker no child is left, however its parent died."""
    before = set(psutil.Process().children(recursive=True))
    yield
    left = [child for child in psutil.Process().children(recursive=True) if child not in before]
    _, alive = psutil.wait_procs(left, timeout=5)
    assert not alive, f"processes left behind: {[(child.pid, child.name(), child.status()) for child in alive]}"
