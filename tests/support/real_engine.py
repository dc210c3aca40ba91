"""A Docker engine of this machine, where one runs, with an image made of this machine's own programs."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import docker
from docker.errors import DockerException

from tests.support import image

NAME = "handwork-test"


@cache
def why_none() -> str:
    """Why nothing can be tried with a real engine; '' if it can."""
    if not image.can_be_made():
        return "an image is made of Debian's own python3, which is not here"
    try:
        _knock(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock")
        with contextlib.closing(docker.from_env(timeout=5)) as client:
            client.ping()
    except (DockerException, OSError):
        return "no Docker engine runs here (DOCKER_HOST names another place)"
    return ""


def _knock(address: str) -> None:
    """Raises OSError where nobody listens: the SDK leaves a socket open then."""
    scheme, _, path = address.partition("://")
    if scheme == "unix":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(path)


@contextlib.contextmanager
def with_image(python: bool = True) -> Iterator[str]:
    """An image, as long as the block runs; its name."""
    tag = f"{'python' if python else 'bare'}-{os.getpid()}"
    with contextlib.closing(docker.from_env()) as client:
        client.api.import_image_from_data(image.image(python), repository=NAME, tag=tag)
        try:
            yield f"{NAME}:{tag}"
        finally:
            client.images.remove(f"{NAME}:{tag}", force=True)


def containers(below: Path) -> list[str]:
    """The names of the containers that exist and see a folder below this one."""
    with contextlib.closing(docker.from_env()) as client:
        found = client.containers.list(all=True, filters={"label": "handwork.session"}, ignore_removed=True)
        sources = {
            str(each.name): [mount["Source"] for mount in each.attrs["Mounts"] if mount.get("Source")] for each in found
        }
    return [name for name, seen in sources.items() if any(Path(source).is_relative_to(below) for source in seen)]
