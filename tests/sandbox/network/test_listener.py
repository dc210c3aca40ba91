"""What comes out of a sandbox as its listening socket is looked at before it is used."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from handwork.errors import SandboxError
from handwork.sandbox.network.listener import _checked


def _unix() -> int:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.bind(f"\0handwork-test-{os.getpid()}")
    sock.listen()
    return sock.detach()


def _silent() -> int:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.bind(("127.0.0.1", 0))
    return sock.detach()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(
    "made",
    [
        lambda: os.open("/dev/null", os.O_RDWR),
        lambda: os.memfd_create("x"),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).detach(),
        _unix,
        _silent,
    ],
    ids=["device", "file", "udp", "unix", "does not listen"],
)
def test_anything_but_a_listening_socket_is_refused_and_closed(made: Callable[[], int]) -> None:
    before = open_files()
    fd = made()
    with pytest.raises(SandboxError, match="is no socket"):
        _checked(fd)
    os.close(fd)
    assert open_files() == before


def test_a_listening_socket_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = _checked(server.fileno())
        assert found.getsockname() == server.getsockname()
        found.close()
